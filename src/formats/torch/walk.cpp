#include "formats/torch/walk.hpp"

#include <fmt/format.h>
#include <ballast/error.hpp>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/text.hpp"
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

struct Child {
  std::string key;
  NodeId node;
};
using Children = std::vector<Child>;

void add_items(const Graph& graph, NodeId node, Children& children) {
  std::size_t i = 0;
  for (const NodeId item : graph.items(node)) children.push_back({std::to_string(i++), item});
}

void add_pairs(const Graph& graph, NodeId node, Children& children) {
  NodeId key = kNoNode;
  for (const NodeId item : graph.pairs(node)) {
    if (key != kNoNode) children.push_back({key_text(graph, key), item});
    key = key == kNoNode ? item : kNoNode;
  }
}

bool has_pairs(const Graph& graph, NodeId node) {
  return node != kNoNode && (graph.kind(node) == Kind::dict || graph.kind(node) == Kind::object);
}

// A dict, or an object that was given its items in its constructor: OrderedDict([(key, value), …]).
void add_listed_pairs(const Graph& graph, NodeId list, Children& children) {
  for (const NodeId pair : graph.items(list)) {
    if (graph.kind(pair) != Kind::tuple && graph.kind(pair) != Kind::list) continue;
    const auto items = graph.items(pair);
    auto at = items.begin();
    if (at == items.end()) continue;
    const NodeId key = *at;
    if (++at == items.end()) continue;
    children.push_back({key_text(graph, key), *at});
  }
}

// The names of an nn.Module's state_dict(): parameters, persistent buffers, then its children.
struct ModuleParts {
  NodeId state, parameters, buffers, modules, non_persistent;
};

std::optional<ModuleParts> module_parts(const Graph& graph, NodeId node) {
  const NodeId state = graph.object(node).state;
  if (state == kNoNode || graph.kind(state) != Kind::dict) return std::nullopt;
  const ModuleParts parts{state, find_key(graph, state, "_parameters"), find_key(graph, state, "_buffers"),
                          find_key(graph, state, "_modules"), find_key(graph, state, "_non_persistent_buffers_set")};
  const bool is_module =
      has_pairs(graph, parts.parameters) && has_pairs(graph, parts.buffers) && has_pairs(graph, parts.modules);
  return is_module ? std::optional(parts) : std::nullopt;
}

std::set<std::string_view> texts_in_set(const Graph& graph, NodeId node) {
  std::set<std::string_view> texts;
  if (node == kNoNode) return texts;
  // Protocol 2 writes set([…]).
  if (graph.kind(node) == Kind::object) node = first_argument(graph, node);
  if (node == kNoNode || (graph.kind(node) != Kind::set && graph.kind(node) != Kind::list)) return texts;
  for (const NodeId item : graph.items(node)) {
    if (graph.kind(item) == Kind::text) texts.insert(graph.chars(item));
  }
  return texts;
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

// What a module's author kept in it beside parameters and buffers: not in its state_dict(), and yet in the file.
void add_attributes(const Graph& graph, NodeId state, Children& children) {
  Children attributes;
  add_pairs(graph, state, attributes);
  for (Child& child : attributes) {
    if (!is_internal(child.key)) children.push_back(std::move(child));
  }
}

Children module_children(const Graph& graph, const ModuleParts& parts) {
  Children all, children;
  add_pairs(graph, parts.parameters, all);
  const std::size_t parameters = all.size();
  add_pairs(graph, parts.buffers, all);
  const auto hidden = texts_in_set(graph, parts.non_persistent);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool is_hidden = i >= parameters && hidden.count(all[i].key) != 0;
    if (!is_hidden && graph.kind(all[i].node) != Kind::none) children.push_back(std::move(all[i]));
  }
  Children modules;
  add_pairs(graph, parts.modules, modules);
  for (Child& child : modules) {
    if (graph.kind(child.node) != Kind::none) children.push_back(std::move(child));
  }
  add_attributes(graph, parts.state, children);
  return children;
}

// State as __setstate__ would get it: attributes, or (attributes, slots), or anything else.
void add_state(const Graph& graph, NodeId state, Children& children) {
  if (state == kNoNode || graph.kind(state) == Kind::none) return;
  if (graph.kind(state) == Kind::dict) return add_pairs(graph, state, children);
  if (graph.kind(state) == Kind::tuple && graph.length(state) == 2) {
    const auto parts = graph.item_list(state);
    const auto is_attributes = [&](NodeId part) {
      return graph.kind(part) == Kind::none || graph.kind(part) == Kind::dict;
    };
    if (is_attributes(parts[0]) && is_attributes(parts[1])) {
      for (const NodeId part : parts) {
        if (graph.kind(part) == Kind::dict) add_pairs(graph, part, children);
      }
      return;
    }
  }
  children.push_back({"<state>", state});
}

void add_arguments(const Graph& graph, NodeId arguments, Children& children) {
  if (arguments == kNoNode || graph.kind(arguments) != Kind::tuple) return;
  std::size_t i = 0;
  for (const NodeId item : graph.items(arguments)) children.push_back({fmt::format("<arg{}>", i++), item});
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

Children object_children(const Graph& graph, NodeId node, const Limits& limits) {
  Children children;
  if (const auto parts = module_parts(graph, node)) return module_children(graph, *parts);
  const pickle::ObjectParts& object = graph.object(node);
  if (const auto array = pickled_numpy_array(graph, node, limits)) {  // of objects
    if (array->data != kNoNode && graph.kind(array->data) == Kind::list) add_items(graph, array->data, children);
    return children;
  }

  const auto callee = callee_of(graph, node);
  const NodeId argument = first_argument(graph, node);
  const bool is_dict = callee && (is_one_of(*callee, "collections", {"OrderedDict", "Counter", "defaultdict"}) ||
                                  callee->is("builtins", "dict"));
  const bool is_list =
      callee && (callee->is("collections", "deque") || is_one_of(*callee, "builtins", {"list", "tuple"}));
  if ((is_dict || is_list) && argument != kNoNode) {
    const Kind kind = graph.kind(argument);
    if (is_dict && kind == Kind::dict) add_pairs(graph, argument, children);
    if (is_dict && kind == Kind::list) add_listed_pairs(graph, argument, children);
    if (is_list && (kind == Kind::list || kind == Kind::tuple)) add_items(graph, argument, children);
  }
  const bool is_rebuilt = callee && callee->is("copyreg", "_reconstructor");
  const bool is_container = is_dict || is_list || is_rebuilt;
  if (!is_container) add_arguments(graph, object.arguments, children);
  if (object.keywords != kNoNode && graph.kind(object.keywords) == Kind::dict)
    add_pairs(graph, object.keywords, children);
  if (!is_dict) add_state(graph, object.state, children);  // an OrderedDict's is its _metadata
  add_items(graph, node, children);
  add_pairs(graph, node, children);
  return children;
}

Children children_of(const Graph& graph, NodeId node, const Limits& limits) {
  Children children;
  switch (graph.kind(node)) {
    case Kind::tuple:
    case Kind::list: add_items(graph, node, children); break;
    case Kind::dict: add_pairs(graph, node, children); break;
    case Kind::object: return object_children(graph, node, limits);
    default: break;
  }
  return children;
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

constexpr std::size_t kDeepestRoot = 2;
constexpr std::size_t kMostRoots = 1000;

class Walker {
 public:
  Walker(const Graph& graph, const std::string& prefix, Rebuilder& rebuilder, const Limits& limits, Checkpoint& into)
      : graph_(graph),
        rebuilder_(rebuilder),
        limits_(limits),
        checkpoint_(into),
        path_(prefix),
        visits_left_(16 * std::uint64_t{graph.size()} + 10'000) {}

  void walk(NodeId root) {
    visit(root);
    while (!frames_.empty()) {
      Frame& frame = frames_.back();
      path_.resize(frame.path_length);
      if (frame.next == frame.children.size()) {
        on_path_[frame.node] = false;
        note_root(frame);
        frames_.pop_back();
        continue;
      }
      const Child& child = frame.children[frame.next++];
      if (!frame.is_root || !path_.empty()) path_ += '.';
      path_ += child.key;
      visit(child.node);
    }
    finish();
  }

 private:
  struct Frame {
    NodeId node;
    Children children;
    std::size_t path_length;
    bool is_root;
    std::size_t tensors_before;  // those that the checkpoint had when the frame was entered
    bool has_tensors = false;    // of its own, not only below
    std::size_t next = 0;
  };

  void visit(NodeId node) {
    if (visits_left_ == 0) {
      throw Error(Errc::limit, "the same objects are reached by too many paths: the tree is larger than its file")
          .at_byte(graph_[node].offset);
    }
    --visits_left_;
    if (add_tensors(node)) {
      if (!frames_.empty()) frames_.back().has_tensors = true;
      return;
    }
    if (is_leaf(graph_, node)) return add_value(node);
    if (on_path_.empty()) on_path_.resize(graph_.size());
    if (on_path_[node]) return;  // it contains itself
    Children children = children_of(graph_, node, limits_);
    if (children.empty()) return add_value(node);
    on_path_[node] = true;
    frames_.push_back({node, std::move(children), path_.size(), frames_.empty(), checkpoint_.tensors.size()});
  }

  // A subtree that is likely to be a state dict of its own: it has tensors, and lies near the top.
  void note_root(const Frame& frame) {
    const std::size_t depth = frames_.size() - 1;
    if (depth == 0 || depth > kDeepestRoot || !frame.has_tensors) return;
    if (checkpoint_.roots.size() == kMostRoots) return;
    checkpoint_.roots.push_back(
        {path_.substr(0, frame.path_length), checkpoint_.tensors.size() - frame.tensors_before});
  }

  bool add_tensors(NodeId node) try {
    if (graph_.kind(node) != Kind::object && graph_.kind(node) != Kind::persistent) return false;
    if (auto file = graph_.kind(node) == Kind::object ? rebuilder_.nested_file(node) : std::nullopt) {
      add_file(*file);
      return true;
    }
    auto rebuilt = rebuilder_.rebuild(node);
    if (!rebuilt) return false;
    std::vector<std::string> names;
    for (auto& part : rebuilt->parts) names.push_back(add_tensor(part_name(part.suffix), part.tensor));
    if (rebuilt->composite) {
      rebuilt->composite->name = path_;
      rebuilt->composite->parts = std::move(names);
      checkpoint_.composites.push_back(std::move(*rebuilt->composite));
    }
    return true;
  } catch (const Error& error) {
    if (error.code() != Errc::unsupported) throw;
    checkpoint_.notes.push_back({path_, fmt::format("{} is left out: {}", quote(path_), error.message())});
    return true;
  }

  std::string part_name(const std::string& suffix) const {
    return suffix.empty() ? path_ : path_.empty() ? suffix : path_ + "." + suffix;
  }

  // The second and later tensor of one name get "~2", "~3".
  std::string add_tensor(const std::string& name, const Tensor& tensor) {
    if (checkpoint_.tensors.size() >= limits_.max_tensors) throw Error(Errc::limit, "there are too many tensors");
    if (checkpoint_.tensors.insert(name, tensor)) return name;
    std::uint64_t& number = taken_.try_emplace(name, 1).first->second;
    for (;;) {
      std::string other = fmt::format("{}~{}", name, ++number);
      if (!checkpoint_.tensors.insert(other, tensor)) continue;
      checkpoint_.notes.push_back(
          {name, fmt::format("another tensor is called {}: it is listed as {}", quote(name), quote(other)),
           Note::Kind::remark});
      return other;
    }
  }

  // A whole file in the bytes of this one: its names under this path.
  void add_file(Checkpoint& file) {
    for (const auto& [name, tensor] : file) add_tensor(part_name(std::string(name)), tensor);
    for (PlainValue& value : file.values) {
      value.path = part_name(value.path);
      keep_value(std::move(value));
    }
    for (auto& note : file.notes) checkpoint_.notes.push_back(std::move(note));
    for (auto& global : file.dangerous) checkpoint_.dangerous.push_back(std::move(global));
  }

  void add_value(NodeId node) {
    if (checkpoint_.values.size() >= limits_.max_values) {
      ++values_left_out_;
      return;
    }
    PlainValue value = plain_value(graph_, node);
    value.path = path_;
    keep_value(std::move(value));
  }

  void keep_value(PlainValue value) {
    if (checkpoint_.values.size() < limits_.max_values)
      checkpoint_.values.push_back(std::move(value));
    else
      ++values_left_out_;
  }

  void finish() {
    if (values_left_out_ == 0) return;
    checkpoint_.notes.push_back({"", fmt::format("{} more values are not kept", values_left_out_), Note::Kind::remark});
  }

  const Graph& graph_;
  Rebuilder& rebuilder_;
  const Limits& limits_;
  Checkpoint& checkpoint_;
  std::string path_;
  std::vector<Frame> frames_;
  std::vector<bool> on_path_;
  std::uint64_t visits_left_;
  std::uint64_t values_left_out_ = 0;
  std::unordered_map<std::string, std::uint64_t> taken_;  // names that occur again, and the last number given
};

}  // namespace

void walk(const Graph& graph, NodeId root, const std::string& prefix, Rebuilder& rebuilder, const Limits& limits,
          Checkpoint& checkpoint) {
  Walker(graph, prefix, rebuilder, limits, checkpoint).walk(root);
}

}  // namespace ballast::torch
