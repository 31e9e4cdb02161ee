// Compares what a call is given with what the allowlist asks for. Nothing is computed: a value that does not stand in
// the file as it is, is not known.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "formats/pickle/allowlist.hpp"
#include "formats/pickle/graph.hpp"

namespace ballast::pickle {

class Arguments {
 public:
  explicit Arguments(const Graph& graph) : graph_(graph), states_(graph.size()) {}

  // `arguments` is a tuple; `keywords` a dict or nothing.
  bool are(Given given, NodeId arguments, NodeId keywords) const;

  // The first four arguments; kNoNode fills the array if there are fewer.
  static constexpr std::size_t kMost = 4;
  std::array<NodeId, kMost> first_of(NodeId arguments) const;

  // The global that names the class or function which a node stands for: the node itself, the class in a persistent id
  // ("module", class, file, source), or the outer class of getattr(class, "Inner"). kNoNode if the class is computed.
  NodeId class_node(NodeId node) const;

  // The text or bytes which stand in the file and are what a node comes to, or kNoNode.
  NodeId literal_bytes(NodeId node) const;

  // Whether a state has the attributes that torch.nn.Module gives every module, those of its tensors among them, and no
  // other: nothing in such a state tells a class to do something.
  bool is_module_state(NodeId state) const;

  // Whether a state sets attributes, and none that Python itself looks for ("__class__").
  bool is_plain_state(NodeId state) const;

  // Whether none of the keys of a dict or an object is a name that Python itself looks for.
  bool has_plain_keys(NodeId dict) const;

 private:
  bool is_literal(NodeId node) const;
  bool is_text(NodeId node) const;
  bool is_latin1(NodeId arguments) const;
  bool is_nested_class(NodeId arguments) const;
  bool is_ufunc(NodeId arguments) const;
  bool is_call_of(NodeId object, std::string_view module, std::string_view name) const;
  bool is_class_and_base(NodeId arguments) const;
  bool is_class_and_arguments(NodeId arguments) const;
  bool is_plain_part(NodeId part) const;

  const Graph& graph_;
  mutable std::vector<std::uint8_t> states_;  // by node: 0 not looked at yet, 1 plain, 2 not
};

}  // namespace ballast::pickle
