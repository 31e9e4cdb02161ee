#include "formats/torch/children.hpp"

#include <fmt/format.h>
#include <ballast/error.hpp>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

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

// Attributes in which nn.Module itself keeps things.
bool is_internal(std::string_view attribute) {
  constexpr std::array kInternal = {
      "_parameters"sv, "_buffers"sv, "_modules"sv, "_non_persistent_buffers_set"sv, "_is_full_backward_hook"sv,
      "_backend"sv,    "_version"sv, "training"sv};
  return std::find(kInternal.begin(), kInternal.end(), attribute) != kInternal.end() ||
         (attribute.starts_with('_') && (attribute.ends_with("_hooks") || attribute.ends_with("_hooks_with_kwargs") ||
                                         attribute.ends_with("_hooks_always_called")));
}

// Objects that stand for a value and are shown as one. Sets are not among them, since they may hold something else.
bool is_value_class(const Callee& callee) {
  if (callee.is_one_of("builtins", {"complex", "range", "xrange", "slice", "bytes", "bytearray", "type"})) return true;
  if (callee.is_one_of("torch", {"Size", "device", "dtype", "Generator"})) return true;
  if (callee.is("torch.serialization", "_get_layout") || callee.is("_codecs", "encode")) return true;
  if (callee.is("numpy", "dtype") || callee.name == "scalar") return callee.module.starts_with("numpy");
  return callee.module == "datetime" || callee.module.starts_with("pathlib") || callee.is("uuid", "UUID") ||
         callee.is("decimal", "Decimal") || callee.is("fractions", "Fraction");
}

bool is_set_class(const Callee& callee) { return callee.is_one_of("builtins", {"set", "frozenset"}); }

// The first items decide, since a set may be as long as the file, and be reached many times. A set inside it counts as
// a value.
bool may_hold_tensors(const Graph& graph, NodeId set) {
  constexpr int kMostLookedAt = 16;
  int looked_at = 0;
  for (const NodeId item : graph.items(set)) {
    const auto callee = callee_of(graph, item);
    const bool is_value = callee && (is_value_class(*callee) || is_set_class(*callee));
    if (graph.kind(item) == Kind::persistent || (graph.kind(item) == Kind::object && !is_value)) return true;
    if (++looked_at == kMostLookedAt) break;
  }
  return false;
}

bool is_value_object(const Graph& graph, NodeId node) {
  const auto callee = callee_of(graph, node);
  if (!callee) return false;
  if (!is_set_class(*callee)) return is_value_class(*callee) || is_pickled_bytes(graph, node);
  const NodeId items = sequence_of(graph, node);
  return items == kNoNode || !may_hold_tensors(graph, items);
}

}  // namespace

// The names of an nn.Module's state_dict(): parameters, persistent buffers, then its children.
struct Children::ModuleParts {
  std::vector<MappingPart> attributes, parameters, buffers, modules;
  NodeId non_persistent = kNoNode;
};

Children::Children(const Graph& graph, NodeId node, const Limits& limits, WalkBudget& budget,
                   const ParameterNumbers* numbers)
    : graph_(&graph), budget_(&budget), numbers_(numbers) {
  switch (graph.kind(node)) {
    case Kind::tuple:
    case Kind::list:
    case Kind::set:
    case Kind::frozenset: add_items(node); break;
    case Kind::dict: add_pairs({{node, false}}); break;
    case Kind::object: add_object(node, limits); break;
    default: break;
  }
}

void Children::add_pairs(std::vector<MappingPart> parts, Which which) {
  sources_.push_back({From::pairs, which, kNoNode, 0, std::move(parts), {}});
}

void Children::add_arguments(const Construction& made, std::size_t skipped) {
  if (made.arguments == kNoNode || graph_->kind(made.arguments) != Kind::tuple) return;
  sources_.push_back({From::arguments, Which::all, made.arguments, made.first + skipped, {}, {}});
}

void Children::add_object(NodeId node, const Limits& limits) {
  if (const auto parts = module_parts(node)) return add_module(*parts);
  if (const auto array = pickled_numpy_array(*graph_, node, limits)) {  // an array of objects
    if (array->data != kNoNode && graph_->kind(array->data) == Kind::list) add_items(array->data);
    return;
  }
  const NodeId state = graph_->object(node).state;
  auto mapping = mapping_of(*graph_, node);
  if (mapping && mapping->is_certain) {
    add_pairs(std::move(mapping->parts));
    add_state(state, Which::of_mapping);
    return add_items(node);
  }
  const Construction made = construction_of(*graph_, node);
  const NodeId list = sequence_of(*graph_, node);
  if (list != kNoNode && list != node) add_items(list);
  if (list == kNoNode) add_arguments(made, mapping && mapping->takes_argument ? 1 : 0);
  if (auto keywords = mapping_of(*graph_, made.keywords)) add_pairs(std::move(keywords->parts));
  add_state(state, Which::all);
  add_items(node);
  if (mapping) add_pairs(std::move(mapping->parts));
}

// Adds a state as __setstate__ would get it: attributes, or (attributes, slots), or anything else.
void Children::add_state(NodeId state, Which which) {
  if (state == kNoNode || graph_->kind(state) == Kind::none) return;
  if (auto attributes = mapping_of(*graph_, state)) return add_pairs(std::move(attributes->parts), which);
  if (graph_->kind(state) == Kind::tuple && graph_->length(state) == 2) {
    const auto both = graph_->item_list(state);
    const auto is_attributes = [&](NodeId part) {
      return graph_->kind(part) == Kind::none || mapping_of(*graph_, part).has_value();
    };
    if (is_attributes(both[0]) && is_attributes(both[1])) {
      for (const NodeId part : both) {
        if (auto attributes = mapping_of(*graph_, part)) add_pairs(std::move(attributes->parts), which);
      }
      return;
    }
  }
  sources_.push_back({From::one, which, state, 0, {}, "<state>"});
}

// An nn.Module is known by its attributes, whatever its class is called.
std::optional<Children::ModuleParts> Children::module_parts(NodeId node) {
  auto attributes = mapping_of(*graph_, graph_->object(node).state);
  if (!attributes) return std::nullopt;
  std::array wanted = {WantedKey{"_parameters"}, WantedKey{"_buffers"}, WantedKey{"_modules"},
                       WantedKey{"_non_persistent_buffers_set"}};
  find_keys(*graph_, *attributes, wanted, budget_);
  ModuleParts parts{std::move(attributes->parts), {}, {}, {}, wanted[3].value};
  std::vector<MappingPart>* const into[] = {&parts.parameters, &parts.buffers, &parts.modules};
  for (std::size_t i = 0; i < std::size(into); ++i) {
    if (auto mapping = mapping_of(*graph_, wanted[i].value))
      *into[i] = std::move(mapping->parts);
    else if (wanted[i].value == kNoNode || graph_->kind(wanted[i].value) != Kind::object)
      return std::nullopt;
  }
  return parts;
}

void Children::add_module(const ModuleParts& parts) {
  find_hidden(parts.non_persistent);
  add_pairs(parts.parameters, Which::in_module);
  add_pairs(parts.buffers, Which::buffers);
  add_pairs(parts.modules, Which::in_module);
  // Other attributes that its author gave it are not in its state_dict(), but are in the file.
  add_pairs(parts.attributes, Which::attributes);
}

void Children::find_hidden(NodeId set) {
  const NodeId names = set == kNoNode ? kNoNode : sequence_of(*graph_, set);
  if (names == kNoNode) return;
  for (const NodeId item : graph_->items(names)) {
    budget_->spend_steps(1);
    if (graph_->kind(item) == Kind::text) hidden_.insert(graph_->chars(item));
  }
}

bool Children::next() {
  for (; source_ < sources_.size(); ++source_, is_in_source_ = false) {
    const Source& source = sources_[source_];
    while (advance(source)) {
      budget_->spend_steps(1);
      budget_->spend_bytes(key_.size());
      if (is_wanted(source.which)) return true;
    }
  }
  return false;
}

bool Children::advance(const Source& source) {
  if (source.from == From::one) {
    if (std::exchange(is_in_source_, true)) return false;
    key_ = source.key;
    node_ = source.node;
    return true;
  }
  if (!std::exchange(is_in_source_, true)) {
    if (source.from == From::pairs)
      pairs_.emplace(*graph_, source.parts);
    else
      at_ = graph_->items(source.node).begin();
    number_ = 0;
  }
  return source.from == From::pairs ? take_pair() : take_item(source);
}

bool Children::take_pair() {
  if (!pairs_->next()) return false;
  node_ = pairs_->value();
  if (pairs_->key() == kNoNode) {
    key_ = fmt::format("<arg0>.{}", pairs_->number());
    return true;
  }
  const auto number = numbers_ == nullptr ? std::nullopt : numbers_->find(*graph_, pairs_->key());
  key_ = number ? std::to_string(*number) : key_text(*graph_, pairs_->key());
  return true;
}

bool Children::take_item(const Source& source) {
  const bool is_argument = source.from == From::arguments;
  for (; is_argument && number_ < source.skipped && at_ != Graph::Items::Iterator(); ++number_) ++at_;
  if (at_ == Graph::Items::Iterator()) return false;
  node_ = *at_;
  ++at_;
  key_ = is_argument ? fmt::format("<arg{}>", number_) : std::to_string(number_);
  ++number_;
  return true;
}

bool Children::is_wanted(Which which) {
  is_left_out_ = which == Which::buffers && hidden_.contains(key_);
  switch (which) {
    case Which::in_module:
    case Which::buffers: return graph_->kind(node_) != Kind::none;
    case Which::attributes: return !is_internal(key_);
    case Which::of_mapping: return key_ != "_metadata";
    case Which::all: break;
  }
  return true;
}

bool is_leaf(const Graph& graph, NodeId node) {
  switch (graph.kind(node)) {
    case Kind::tuple:
    case Kind::list:
    case Kind::dict: return graph.length(node) == 0;
    case Kind::set:
    case Kind::frozenset: return !may_hold_tensors(graph, node);
    case Kind::object: return is_value_object(graph, node);
    default: return true;
  }
}

}  // namespace ballast::torch
