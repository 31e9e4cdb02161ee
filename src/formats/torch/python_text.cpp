#include "formats/torch/python_text.hpp"

#include <fmt/format.h>
#include <ballast/error.hpp>

#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "formats/torch/calls.hpp"
#include "formats/torch/numpy.hpp"
#include "formats/torch/pickled_bytes.hpp"
#include "formats/torch/types.hpp"

namespace ballast::torch {
namespace {

using pickle::Graph;
using pickle::Kind;
using pickle::kNoNode;
using pickle::NodeId;

constexpr std::size_t kDeepest = 16;

std::string float_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

// As Python quotes: single quotes unless only they occur in it.
std::string quoted(std::string_view chars, bool is_bytes, std::size_t most) {
  const bool use_double = chars.find('\'') != std::string_view::npos && chars.find('"') == std::string_view::npos;
  const char mark = use_double ? '"' : '\'';
  std::string text = is_bytes ? "b" : "";
  text += mark;
  for (std::size_t i = 0; i < chars.size(); ++i) {
    if (text.size() > most) return text + "…";
    const auto c = static_cast<unsigned char>(chars[i]);
    if (c == static_cast<unsigned char>(mark) || c == '\\')
      text += fmt::format("\\{}", chars[i]);
    else if (c == '\n')
      text += "\\n";
    else if (c == '\r')
      text += "\\r";
    else if (c == '\t')
      text += "\\t";
    else if (c < 0x20 || c == 0x7F || (is_bytes && c > 0x7F))
      text += fmt::format("\\x{:02x}", c);
    else
      text += chars[i];
  }
  return text + mark;
}

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
    return fmt::format("({}{:+}j)", parts[0], parts[1]);
  }
  if (value.dtype() == DType::c64) {
    std::array<float, 2> parts;
    std::memcpy(parts.data(), bytes.data(), sizeof parts);
    return fmt::format("({}{:+}j)", parts[0], parts[1]);
  }
  return std::string(name(value.dtype()));
}

struct Brackets {
  std::string_view open, close;
};

// What is printed before and after the items of a container; nothing for a leaf.
Brackets brackets(const Graph& graph, NodeId node) {
  switch (graph.kind(node)) {
    case Kind::tuple: return {"(", graph.length(node) == 1 ? ",)" : ")"};
    case Kind::list: return {"[", "]"};
    case Kind::set: return graph.length(node) == 0 ? Brackets{"set(", ")"} : Brackets{"{", "}"};
    case Kind::frozenset: return {"frozenset({", "})"};
    case Kind::dict: return {"{", "}"};
    case Kind::object: return {"(", ")"};
    default: return {};
  }
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
    case Kind::global: return fmt::format("{}.{}", graph.global(node).module, graph.global(node).name);
    case Kind::persistent: return "<storage>";
    default: return {};
  }
}

// The items of a container as they are printed: key and value one after the other in a dict.
std::vector<NodeId> printed_items(const Graph& graph, NodeId node, std::size_t most) {
  std::vector<NodeId> items;
  const auto take = [&](const auto& range) {
    for (const NodeId item : range) {
      if (items.size() == most) return;
      items.push_back(item);
    }
  };
  switch (graph.kind(node)) {
    case Kind::dict: take(graph.pairs(node)); break;
    case Kind::object: {
      const NodeId arguments = graph.object(node).arguments;
      if (arguments != kNoNode && graph.kind(arguments) == Kind::tuple) take(graph.items(arguments));
      break;
    }
    default: take(graph.items(node));
  }
  return items;
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

// What _codecs.encode(…) stands for, where that is short.
std::optional<std::string> short_bytes(const Graph& graph, NodeId node) {
  constexpr std::uint64_t kMost = 1024;  // what is shown is shorter
  const auto length = graph.kind(node) == Kind::object ? pickled_length(graph, node) : std::nullopt;
  if (!length || *length > kMost) return std::nullopt;
  const auto bytes = pickled_bytes_source(graph, node, {});
  std::string chars(static_cast<std::size_t>(bytes->size_bytes()), '\0');
  bytes->read_at(0, std::as_writable_bytes(std::span(chars)));
  return chars;
}

}  // namespace

std::string python_repr(const Graph& graph, NodeId root, std::size_t most) {
  struct Frame {
    NodeId node;
    std::vector<NodeId> items;
    std::size_t next = 0;
  };
  std::string text;
  std::vector<Frame> frames;
  const auto enter = [&](NodeId node) {
    const Brackets around = brackets(graph, node);
    if (around.open.empty()) {
      text += leaf_text(graph, node, most);
    } else if (frames.size() == kDeepest) {
      text += "…";
    } else {
      if (graph.kind(node) == Kind::object) text += type_name(graph, node);
      text += around.open;
      frames.push_back({node, printed_items(graph, node, most)});
    }
  };
  enter(root);
  while (!frames.empty()) {
    Frame& frame = frames.back();
    if (frame.next == frame.items.size() || text.size() > most) {
      if (frame.next < frame.items.size()) text += "…";
      text += brackets(graph, frame.node).close;
      frames.pop_back();
      continue;
    }
    const bool is_value = graph.kind(frame.node) == Kind::dict && frame.next % 2 == 1;
    if (frame.next != 0) text += is_value ? ": " : ", ";
    enter(frame.items[frame.next++]);  // may move the frames
  }
  return text;
}

std::string key_text(const Graph& graph, NodeId node) {
  if (graph.kind(node) == Kind::text && !graph[node].is_far) return std::string(graph.chars(node));
  if (const auto bytes = short_bytes(graph, node)) return quoted(*bytes, true, 200);
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
        value.type = "bytes";
        if (const auto bytes = short_bytes(graph, node)) {
          value.value = quoted(*bytes, true, 200);
          return value;
        }
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
