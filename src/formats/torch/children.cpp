#include "formats/torch/children.hpp"

#include <fmt/format.h>
#include <ballast/error.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "formats/torch/calls.hpp"
#include "formats/torch/numpy.hpp"
#include "formats/torch/pickled_bytes.hpp"
#include "formats/torch/python_text.hpp"

namespace ballast::torch {
namespace {

using pickle::Graph;
using pickle::Kind;
using pickle::kNoNode;
using pickle::NodeId;
using namespace std::string_view_literals;

bool has_pairs(const Graph& graph, NodeId node) {
  return node != kNoNode && (graph.kind(node) == Kind::dict || graph.kind(node) == Kind::object);
}

// What nn.Module itself keeps in a module.
bool is_internal(std::string_view attribute) {
  constexpr std::array kInternal = {
      "_parameters"sv, "_buffers"sv, "_modules"sv, "_non_persistent_buffers_set"sv, "_is_full_backward_hook"sv,
      "_backend"sv,    "_version"sv, "training"sv};
  return std::find(kInternal.begin(), kInternal.end(), attribute) != kInternal.end() ||
         (attribute.starts_with('_') && (attribute.ends_with("_hooks") || attribute.ends_with("_hooks_with_kwargs") ||
                                         attribute.ends_with("_hooks_always_called")));
}

bool is_one_of(const Callee& callee, std::string_view module, std::initializer_list<std::string_view> names) {
  if (callee.module != module) return false;
  for (const std::string_view name : names) {
    if (callee.name == name) return true;
  }
  return false;
}

// Objects that stand for a value and are shown as one.
bool is_value_object(const Graph& graph, NodeId node, const Callee& callee) {
  if (is_pickled_bytes(graph, node)) return true;
  if (is_one_of(callee, "builtins", {"set", "frozenset", "complex", "range", "xrange", "slice", "bytes", "bytearray"}))
    return true;
  if (is_one_of(callee, "torch", {"Size", "device", "dtype", "Generator"})) return true;
  if (callee.is("torch.serialization", "_get_layout") || callee.is("_codecs", "encode")) return true;
  if (callee.is("numpy", "dtype") || callee.name == "scalar") return callee.module.starts_with("numpy");
  return callee.module == "datetime" || callee.module.starts_with("pathlib") || callee.is("uuid", "UUID") ||
         callee.is("decimal", "Decimal") || callee.is("fractions", "Fraction");
}

// Collects the children of one node.
class Finder {
 public:
  Finder(const Graph& graph, const Limits& limits, WalkBudget& budget)
      : graph_(graph), limits_(limits), budget_(budget) {}

  Children find(NodeId node) {
    switch (graph_.kind(node)) {
      case Kind::tuple:
      case Kind::list: add_items(node); break;
      case Kind::dict: add_pairs(node); break;
      case Kind::object: add_object(node); break;
      default: break;
    }
    return std::move(children_);
  }

 private:
  // The names of an nn.Module's state_dict(): parameters, persistent buffers, then its children.
  struct ModuleParts {
    NodeId state, parameters, buffers, modules, non_persistent;
  };

  void add(std::string key, NodeId node) {
    budget_.spend_bytes(key.size());
    children_.push_back({std::move(key), node});
  }

  void add_items(NodeId node) {
    std::size_t i = 0;
    for (const NodeId item : graph_.items(node)) {
      budget_.spend_steps(1);
      add(std::to_string(i++), item);
    }
  }

  void add_pairs(NodeId node) {
    NodeId key = kNoNode;
    for (const NodeId item : graph_.pairs(node)) {
      budget_.spend_steps(1);
      if (key != kNoNode) add(key_text(graph_, key), item);
      key = key == kNoNode ? item : kNoNode;
    }
  }

  // A dict, or an object that was given its items in its constructor: OrderedDict([(key, value), …]).
  void add_listed_pairs(NodeId list) {
    for (const NodeId pair : graph_.items(list)) {
      budget_.spend_steps(1);
      if (graph_.kind(pair) != Kind::tuple && graph_.kind(pair) != Kind::list) continue;
      const auto items = graph_.items(pair);
      auto at = items.begin();
      if (at == items.end()) continue;
      const NodeId key = *at;
      if (++at == items.end()) continue;
      add(key_text(graph_, key), *at);
    }
  }

  NodeId find_part(NodeId state, std::string_view key) {
    budget_.spend_steps(graph_.length(state));
    return find_key(graph_, state, key);
  }

  std::optional<ModuleParts> module_parts(NodeId node) {
    const NodeId state = graph_.object(node).state;
    if (state == kNoNode || graph_.kind(state) != Kind::dict) return std::nullopt;
    ModuleParts parts{state, kNoNode, kNoNode, kNoNode, kNoNode};
    if (!has_pairs(graph_, parts.parameters = find_part(state, "_parameters"))) return std::nullopt;
    if (!has_pairs(graph_, parts.buffers = find_part(state, "_buffers"))) return std::nullopt;
    if (!has_pairs(graph_, parts.modules = find_part(state, "_modules"))) return std::nullopt;
    parts.non_persistent = find_part(state, "_non_persistent_buffers_set");
    return parts;
  }

  std::set<std::string_view> texts_in_set(NodeId node) {
    std::set<std::string_view> texts;
    if (node == kNoNode) return texts;
    // Protocol 2 writes set([…]).
    if (graph_.kind(node) == Kind::object) node = first_argument(graph_, node);
    if (node == kNoNode || (graph_.kind(node) != Kind::set && graph_.kind(node) != Kind::list)) return texts;
    budget_.spend_steps(graph_.length(node));
    for (const NodeId item : graph_.items(node)) {
      if (graph_.kind(item) == Kind::text) texts.insert(graph_.chars(item));
    }
    return texts;
  }

  void add_module(const ModuleParts& parts) {
    add_pairs(parts.parameters);
    const std::size_t parameters = children_.size();
    add_pairs(parts.buffers);
    const auto hidden = texts_in_set(parts.non_persistent);
    const auto is_hidden = [&](const Child& child) { return hidden.count(child.key) != 0; };
    children_.erase(
        std::remove_if(children_.begin() + static_cast<std::ptrdiff_t>(parameters), children_.end(), is_hidden),
        children_.end());
    add_pairs(parts.modules);
    std::erase_if(children_, [&](const Child& child) { return graph_.kind(child.node) == Kind::none; });

    // What its author kept in it beside these: not in its state_dict(), and yet in the file.
    const auto named = static_cast<std::ptrdiff_t>(children_.size());
    add_pairs(parts.state);
    const auto is_kept_by_torch = [](const Child& child) { return is_internal(child.key); };
    children_.erase(std::remove_if(children_.begin() + named, children_.end(), is_kept_by_torch), children_.end());
  }

  // State as __setstate__ would get it: attributes, or (attributes, slots), or anything else.
  void add_state(NodeId state) {
    if (state == kNoNode || graph_.kind(state) == Kind::none) return;
    if (graph_.kind(state) == Kind::dict) return add_pairs(state);
    if (graph_.kind(state) == Kind::tuple && graph_.length(state) == 2) {
      const auto parts = graph_.item_list(state);
      const auto is_attributes = [&](NodeId part) {
        return graph_.kind(part) == Kind::none || graph_.kind(part) == Kind::dict;
      };
      if (is_attributes(parts[0]) && is_attributes(parts[1])) {
        for (const NodeId part : parts) {
          if (graph_.kind(part) == Kind::dict) add_pairs(part);
        }
        return;
      }
    }
    add("<state>", state);
  }

  void add_arguments(NodeId arguments) {
    if (arguments == kNoNode || graph_.kind(arguments) != Kind::tuple) return;
    std::size_t i = 0;
    for (const NodeId item : graph_.items(arguments)) {
      budget_.spend_steps(1);
      add(fmt::format("<arg{}>", i++), item);
    }
  }

  void add_object(NodeId node) {
    if (const auto parts = module_parts(node)) return add_module(*parts);
    if (const auto array = pickled_numpy_array(graph_, node, limits_)) {  // of objects
      if (array->data != kNoNode && graph_.kind(array->data) == Kind::list) add_items(array->data);
      return;
    }

    const pickle::ObjectParts& object = graph_.object(node);
    const auto callee = callee_of(graph_, node);
    const NodeId argument = first_argument(graph_, node);
    const bool is_dict = callee && (is_one_of(*callee, "collections", {"OrderedDict", "Counter", "defaultdict"}) ||
                                    callee->is("builtins", "dict"));
    const bool is_list =
        callee && (callee->is("collections", "deque") || is_one_of(*callee, "builtins", {"list", "tuple"}));
    if ((is_dict || is_list) && argument != kNoNode) {
      const Kind kind = graph_.kind(argument);
      if (is_dict && kind == Kind::dict) add_pairs(argument);
      if (is_dict && kind == Kind::list) add_listed_pairs(argument);
      if (is_list && (kind == Kind::list || kind == Kind::tuple)) add_items(argument);
    }
    const bool is_rebuilt = callee && callee->is("copyreg", "_reconstructor");
    if (!is_dict && !is_list && !is_rebuilt) add_arguments(object.arguments);
    if (object.keywords != kNoNode && graph_.kind(object.keywords) == Kind::dict) add_pairs(object.keywords);
    if (!is_dict) add_state(object.state);  // an OrderedDict's is its _metadata
    add_items(node);
    add_pairs(node);
  }

  const Graph& graph_;
  const Limits& limits_;
  WalkBudget& budget_;
  Children children_;
};

[[noreturn]] void throw_spent() {
  throw Error(Errc::limit, "the same objects are reached by too many paths: the tree is larger than its file")
      .hint("ballast scan looks into it all the same");
}

}  // namespace

WalkBudget::WalkBudget(const Graph& graph)
    : steps_(16 * (std::uint64_t{graph.size()} + graph.link_count()) + 10'000),
      bytes_(16 * graph.source()->size_bytes() + (std::uint64_t{4} << 20)) {}

void WalkBudget::spend_steps(std::uint64_t count) {
  if (count > steps_) throw_spent();
  steps_ -= count;
}

void WalkBudget::spend_bytes(std::uint64_t count) {
  if (count > bytes_) throw_spent();
  bytes_ -= count;
}

Children children_of(const Graph& graph, NodeId node, const Limits& limits, WalkBudget& budget) {
  return Finder(graph, limits, budget).find(node);
}

bool is_leaf(const Graph& graph, NodeId node) {
  switch (graph.kind(node)) {
    case Kind::tuple:
    case Kind::list:
    case Kind::dict: return graph.length(node) == 0;
    case Kind::object: {
      const auto callee = callee_of(graph, node);
      return callee && is_value_object(graph, node, *callee);
    }
    default: return true;
  }
}

}  // namespace ballast::torch
