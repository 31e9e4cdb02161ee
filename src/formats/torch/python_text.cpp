#include "formats/torch/python_text.hpp"

#include <fmt/format.h>
#include <ballast/error.hpp>

#include <bit>
#include <cstring>
#include <vector>

#include "formats/torch/calls.hpp"
#include "formats/torch/mapping.hpp"
#include "formats/torch/numpy.hpp"
#include "formats/torch/pickled_bytes.hpp"
#include "formats/torch/python_objects.hpp"
#include "formats/torch/types.hpp"

namespace ballast::torch {
namespace {

using pickle::Graph;
using pickle::Kind;
using pickle::kNoNode;
using pickle::NodeId;

constexpr std::size_t kDeepest = 16;

std::string number_text(const Tensor& value) {
  std::array<std::byte, 16> bytes{};
  value.read(0, std::span(bytes).first(static_cast<std::size_t>(value.nbytes())));
  const auto as = [&]<class T>(T) {
    T number;
    std::memcpy(&number, bytes.data(), sizeof number);
    return number;
  };
  switch (value.dtype()) {
    case DType::boolean: return bytes[0] == std::byte{0} ? "False" : "True";
    case DType::f64: return float_text(as(double{}));
    case DType::f32: return float_text(static_cast<double>(as(float{})));
    case DType::i64: return std::to_string(as(std::int64_t{}));
    case DType::i32: return std::to_string(as(std::int32_t{}));
    case DType::i16: return std::to_string(as(std::int16_t{}));
    case DType::i8: return std::to_string(as(std::int8_t{}));
    case DType::u64: return std::to_string(as(std::uint64_t{}));
    case DType::u32: return std::to_string(as(std::uint32_t{}));
    case DType::u16: return std::to_string(as(std::uint16_t{}));
    case DType::u8: return std::to_string(as(std::uint8_t{}));
    default: break;
  }
  if (value.dtype() == DType::f16) {
    std::array<float, 1> wide;
    value.to(DType::f32).read(0, std::as_writable_bytes(std::span(wide)));
    return float_text(static_cast<double>(wide[0]));
  }
  if (value.dtype() == DType::c128) {
    std::array<double, 2> parts;
    std::memcpy(parts.data(), bytes.data(), sizeof parts);
    return complex_text(parts[0], parts[1]);
  }
  if (value.dtype() == DType::c64) {
    std::array<float, 2> parts;
    std::memcpy(parts.data(), bytes.data(), sizeof parts);
    return complex_text(parts[0], parts[1]);
  }
  return std::string(name(value.dtype()));
}

std::string leaf_text(const Graph& graph, NodeId node, std::size_t most) {
  const pickle::Node& leaf = graph[node];
  switch (leaf.kind) {
    case Kind::none: return "None";
    case Kind::boolean: return leaf.integer != 0 ? "True" : "False";
    case Kind::integer: return std::to_string(leaf.integer);
    case Kind::big_integer: return std::string(graph.chars(node).substr(0, most));
    case Kind::real: return float_text(leaf.real);
    case Kind::text:
      if (leaf.is_far) return fmt::format("<text of {} bytes>", graph.length(node));
      return quoted(graph.chars(node), false, most);
    case Kind::bytes:
    case Kind::bytearray: {
      if (leaf.is_far) return fmt::format("<{} bytes>", graph.length(node));
      const std::string text = quoted(graph.chars(node), true, most);
      return leaf.kind == Kind::bytes ? text : "bytearray(" + text + ")";
    }
    case Kind::global: return global_text(graph, node);
    case Kind::persistent: return "<storage>";
    default: return {};
  }
}

std::string type_name(const Graph& graph, NodeId node) {
  switch (graph.kind(node)) {
    case Kind::none: return "None";
    case Kind::boolean: return "bool";
    case Kind::integer:
    case Kind::big_integer: return "int";
    case Kind::real: return "float";
    case Kind::text: return "str";
    case Kind::bytes: return "bytes";
    case Kind::bytearray: return "bytearray";
    case Kind::tuple: return "tuple";
    case Kind::list: return "list";
    case Kind::set: return "set";
    case Kind::frozenset: return "frozenset";
    case Kind::dict: return "dict";
    case Kind::global: return "global";
    case Kind::persistent: return "storage";
    case Kind::object: break;
  }
  const auto callee = callee_of(graph, node);
  if (!callee) return "object";
  if (callee->module == "builtins") return std::string(callee->name);
  return fmt::format("{}.{}", callee->module, callee->name);
}

// How a container is printed: what stands before and after its items, and the items.
struct Printed {
  std::string open, close;
  std::vector<NodeId> items;  // key, value, key, value, ... of a dict
  bool is_dict = false;
};

template <class Items>
std::vector<NodeId> first_items(const Items& all, std::size_t most) {
  std::vector<NodeId> items;
  for (const NodeId item : all) {
    if (items.size() == most) break;
    items.push_back(item);
  }
  return items;
}

Printed printed_set(const Graph& graph, NodeId items, bool is_frozen, std::size_t most) {
  Printed set{is_frozen ? "frozenset({" : "{", is_frozen ? "})" : "}", first_items(graph.items(items), most)};
  if (set.items.empty()) return {is_frozen ? "frozenset(" : "set(", ")", {}};
  return set;
}

// Prints a call of the class or function with its arguments; for a set, its items.
Printed printed_object(const Graph& graph, NodeId node, std::size_t most) {
  const auto callee = callee_of(graph, node);
  const NodeId items = sequence_of(graph, node);
  if (items != kNoNode && callee && callee->is_one_of("builtins", {"set", "frozenset"}))
    return printed_set(graph, items, callee->name == "frozenset", most);
  const NodeId arguments = graph.object(node).arguments;
  Printed call{type_name(graph, node) + "(", ")", {}};
  if (arguments != kNoNode && graph.kind(arguments) == Kind::tuple)
    call.items = first_items(graph.items(arguments), most);
  return call;
}

std::optional<Printed> printed(const Graph& graph, NodeId node, std::size_t most) {
  switch (graph.kind(node)) {
    case Kind::tuple: return Printed{"(", graph.length(node) == 1 ? ",)" : ")", first_items(graph.items(node), most)};
    case Kind::list: return Printed{"[", "]", first_items(graph.items(node), most)};
    case Kind::set: return printed_set(graph, node, false, most);
    case Kind::frozenset: return printed_set(graph, node, true, most);
    case Kind::dict: return Printed{"{", "}", first_items(graph.pairs(node), most), true};
    case Kind::object: return printed_object(graph, node, most);
    default: return std::nullopt;
  }
}

// The text of a node that is shown as one word: a leaf, or an object that stands for a value.
std::optional<std::string> word(const Graph& graph, NodeId node, std::size_t most) {
  if (graph.kind(node) != Kind::object) {
    std::string leaf = leaf_text(graph, node, most);
    return leaf.empty() ? std::nullopt : std::optional(std::move(leaf));
  }
  if (auto text = value_object_text(graph, node)) return text;
  const auto scalar = pickled_numpy_scalar(graph, node);
  return scalar && scalar->value ? std::optional(number_text(*scalar->value)) : std::nullopt;
}

}  // namespace

std::string python_repr(const Graph& graph, NodeId root, std::size_t most) {
  struct Frame {
    Printed container;
    std::size_t next = 0;
  };
  std::string text;
  std::vector<Frame> frames;
  const auto enter = [&](NodeId node) {
    if (const auto whole = word(graph, node, most)) {
      text += *whole;
    } else if (frames.size() == kDeepest) {
      text += "…";
    } else if (auto container = printed(graph, node, most)) {
      text += container->open;
      frames.push_back({std::move(*container)});
    }
  };
  enter(root);
  while (!frames.empty()) {
    Frame& frame = frames.back();
    const Printed& container = frame.container;
    if (frame.next == container.items.size() || text.size() > most) {
      if (frame.next < container.items.size()) text += "…";
      text += container.close;
      frames.pop_back();
      continue;
    }
    if (frame.next != 0) text += container.is_dict && frame.next % 2 == 1 ? ": " : ", ";
    enter(container.items[frame.next++]);  // may move the frames
  }
  return text;
}

std::string key_text(const Graph& graph, NodeId node) {
  if (graph.kind(node) == Kind::text && !graph[node].is_far) return std::string(graph.chars(node));
  return python_repr(graph, node);
}

PlainValue plain_value(const Graph& graph, NodeId node) {
  PlainValue value{{}, type_name(graph, node), {}};
  const pickle::Node& leaf = graph[node];
  switch (leaf.kind) {
    case Kind::none: return value;
    case Kind::boolean: value.value = leaf.integer != 0; return value;
    case Kind::integer: value.value = leaf.integer; return value;
    case Kind::real: value.value = leaf.real; return value;
    case Kind::text:
      if (!leaf.is_far) {
        value.value = std::string(graph.chars(node));
        return value;
      }
      break;
    case Kind::object:
      if (is_pickled_bytes(graph, node)) {
        value.type = value.type == "bytearray" ? value.type : "bytes";
      } else if (const auto scalar = pickled_numpy_scalar(graph, node); scalar && scalar->value) {
        value.type = "numpy " + scalar->type.code;
        value.value = number_text(*scalar->value);
        return value;
      } else if (const auto type = pickled_numpy_type(graph, node)) {
        value.value = "dtype(" + type->code + ")";
        return value;
      }
      break;
    default: break;
  }
  value.value = python_repr(graph, node);
  return value;
}

}  // namespace ballast::torch
