// Mappings and sequences, in every spelling that a pickle has for them.
//
// The items of a mapping may stand in a dict, be set in an object after it was made (SETITEMS), or be given to its
// class: as a mapping, as a list or tuple of pairs that are lists or tuples themselves, or by name. Code that looks for
// modules, state dicts or values asks here, so that all of it reads every spelling.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "formats/pickle/graph.hpp"
#include "formats/torch/walk_budget.hpp"

namespace ballast::torch {

// Items lie in several nodes if a class was given some and others were set later. The parts are in the order in which
// they count.
struct MappingPart {
  pickle::NodeId node;
  bool is_list;  // whether it is a list of pairs; else the items are what graph.pairs() gives
};

struct Mapping {
  std::vector<MappingPart> parts;
  bool is_certain = false;      // by its class: it has nothing but items and attributes
  bool takes_argument = false;  // the first argument that was given to its class is one of the parts
};

// Nothing if a node is not a mapping: neither a dict, nor an object of a class that is known or named as a mapping, nor
// an object in which something was set.
std::optional<Mapping> mapping_of(const pickle::Graph& graph, pickle::NodeId node);

// A walk over the pairs of some parts.
class MappingPairs {
 public:
  MappingPairs(const pickle::Graph& graph, std::vector<MappingPart> parts) : graph_(&graph), parts_(std::move(parts)) {}

  bool next();  // call it before the first pair, too; false behind the last
  // The key is kNoNode for an item that stands in a list of pairs but is not a pair.
  pickle::NodeId key() const noexcept { return key_; }
  pickle::NodeId value() const noexcept { return value_; }
  std::uint64_t number() const noexcept { return number_; }  // in its part

 private:
  void split(pickle::NodeId item);

  const pickle::Graph* graph_;
  std::vector<MappingPart> parts_;
  std::size_t part_ = 0;
  bool is_in_part_ = false;
  pickle::Graph::Items::Iterator at_;
  pickle::NodeId key_ = pickle::kNoNode, value_ = pickle::kNoNode;
  std::uint64_t number_ = 0;
};

// The values of text keys: the last value if a key occurs several times, kNoNode if it does not occur. Makes one pass
// over the mapping; if there is a budget, each pair costs one step.
struct WantedKey {
  std::string_view key;
  pickle::NodeId value = pickle::kNoNode;
};
void find_keys(const pickle::Graph& graph, const Mapping& mapping, std::span<WantedKey> wanted, WalkBudget* budget);

// The same for one key of a node, which need not be a mapping.
pickle::NodeId find_key(const pickle::Graph& graph, pickle::NodeId node, std::string_view key,
                        WalkBudget* budget = nullptr);

// The node with the items that were given to a list, tuple, set, frozenset or deque, or that are in one; kNoNode if a
// node is none of these. Items that were also appended to an object are in graph.items() of the object.
pickle::NodeId sequence_of(const pickle::Graph& graph, pickle::NodeId node);

}  // namespace ballast::torch
