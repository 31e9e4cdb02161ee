// The children of a node of the tree, and their names.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <ballast/limits.hpp>

#include "formats/pickle/graph.hpp"
#include "formats/torch/calls.hpp"
#include "formats/torch/mapping.hpp"
#include "formats/torch/optimizer.hpp"
#include "formats/torch/walk_budget.hpp"

namespace ballast::torch {

// The children of one node, one after the other: the values of a dict, the items of a list or tuple, for an nn.Module
// what its state_dict() names and then its attributes, for any other object its constructor's arguments, attributes and
// items. They are not collected anywhere, because a list may have as many as the file has bytes.
class Children {
 public:
  // `numbers` are the numbers of the parameters by which an optimizer's state is keyed, or null.
  Children(const pickle::Graph& graph, pickle::NodeId node, const Limits& limits, WalkBudget& budget,
           const ParameterNumbers* numbers = nullptr);

  bool next();  // call it before the first child, too; false behind the last
  const std::string& key() const noexcept { return key_; }
  pickle::NodeId node() const noexcept { return node_; }
  bool is_left_out() const noexcept { return is_left_out_; }  // a buffer that state_dict() does not have

 private:
  enum class From : std::uint8_t { items, arguments, pairs, one };
  enum class Which : std::uint8_t {
    all,
    in_module,   // without None
    buffers,     // without None; buffers that are not persistent are left out
    attributes,  // without what nn.Module keeps for itself
    of_mapping,  // without the versions of modules, which do not belong to a state dict
  };
  struct Source {
    From from = From::items;
    Which which = Which::all;
    pickle::NodeId node = pickle::kNoNode;  // items, arguments: their owner; one: the node itself
    std::size_t skipped = 0;                // arguments to skip
    std::vector<MappingPart> parts;         // pairs
    std::string_view key;                   // one
  };
  struct ModuleParts;

  void add_object(pickle::NodeId node, const Limits& limits);
  void add_module(const ModuleParts& parts);
  std::optional<ModuleParts> module_parts(pickle::NodeId node);
  void add_items(pickle::NodeId node) { sources_.push_back({From::items, Which::all, node, 0, {}, {}}); }
  void add_arguments(const Construction& made, std::size_t skipped);
  void add_pairs(std::vector<MappingPart> parts, Which which = Which::all);
  void add_state(pickle::NodeId state, Which which);
  void find_hidden(pickle::NodeId set);

  bool advance(const Source& source);  // within one source
  bool take_pair();
  bool take_item(const Source& source);
  bool is_wanted(Which which);

  const pickle::Graph* graph_;
  WalkBudget* budget_;
  const ParameterNumbers* numbers_;
  std::vector<Source> sources_;
  std::size_t source_ = 0;
  bool is_in_source_ = false;
  std::optional<MappingPairs> pairs_;
  pickle::Graph::Items::Iterator at_;
  std::size_t number_ = 0;
  std::set<std::string_view> hidden_;  // buffers that are not persistent
  std::string key_;
  pickle::NodeId node_ = pickle::kNoNode;
  bool is_left_out_ = false;
};

// Whether a node is shown as a value: it has nothing below it, or it is an object that stands for a value.
bool is_leaf(const pickle::Graph& graph, pickle::NodeId node);

}  // namespace ballast::torch
