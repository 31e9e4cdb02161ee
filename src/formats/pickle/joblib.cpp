#include "formats/pickle/joblib.hpp"

#include <array>
#include <charconv>
#include <string_view>

#include "core/checked.hpp"

namespace ballast::pickle {
namespace {

std::optional<std::uint64_t> element_count(const Graph& graph, NodeId shape) {
  constexpr std::uint64_t kMostDimensions = 64;
  if (shape == kNoNode || graph.kind(shape) != Kind::tuple || graph.length(shape) > kMostDimensions)
    return std::nullopt;
  std::uint64_t count = 1;
  for (const NodeId item : graph.items(shape)) {
    if (graph.kind(item) != Kind::integer || graph[item].integer < 0) return std::nullopt;
    const auto product = checked_mul(count, static_cast<std::uint64_t>(graph[item].integer));
    if (!product) return std::nullopt;
    count = *product;
  }
  return count;
}

struct Element {
  bool is_object = false;
  std::uint64_t bytes = 0;
};

// numpy.dtype("f8", …) with the state (version, order, sub-array, names, fields, bytes, alignment, flags).
std::optional<Element> element_of(const Graph& graph, NodeId dtype) {
  if (dtype == kNoNode || graph.kind(dtype) != Kind::object ||
      !graph.is_global(graph.object(dtype).callee, "numpy", "dtype"))
    return std::nullopt;
  const ObjectParts parts = graph.object(dtype);
  const auto arguments = graph.items(parts.arguments);
  if (!(arguments.begin() != arguments.end())) return std::nullopt;
  const NodeId first = *arguments.begin();
  std::string_view code = graph.kind(first) == Kind::text ? graph.chars(first) : std::string_view();
  if (!code.empty() && std::string_view("<>=|").find(code[0]) != std::string_view::npos) code.remove_prefix(1);
  if (code.empty()) return std::nullopt;
  if (code[0] == 'O') return Element{true, 0};

  constexpr std::size_t kBytes = 5, kFlags = 7;
  std::size_t i = 0;
  std::int64_t bytes = 0;
  if (parts.state != kNoNode && graph.kind(parts.state) == Kind::tuple && graph.length(parts.state) <= 16) {
    for (const NodeId item : graph.items(parts.state)) {
      const std::int64_t number = graph.kind(item) == Kind::integer ? graph[item].integer : 0;
      if (i == kFlags && (number & 1) != 0) return Element{true, 0};  // some of its fields are objects
      if (i++ == kBytes) bytes = number;
    }
  }
  if (code[0] == 'V' && bytes > 0) return Element{false, static_cast<std::uint64_t>(bytes)};
  if (code == "?") return Element{false, 1};
  std::uint64_t size = 0;
  const auto [end, error] = std::from_chars(code.data() + 1, code.data() + code.size(), size);
  if (error != std::errc() || end != code.data() + code.size() || size > (1U << 30)) return std::nullopt;
  return Element{false, code[0] == 'U' ? 4 * size : size};
}

}  // namespace

bool is_array_wrapper(const Graph& graph, NodeId node) noexcept {
  return graph.kind(node) == Kind::object &&
         graph.is_global(graph.object(node).callee, kArrayWrapperModule, kArrayWrapper);
}

NodeId wrapper_attribute(const Graph& graph, NodeId wrapper, std::string_view name) {
  const NodeId state = graph.object(wrapper).state;
  constexpr std::uint64_t kMostAttributes = 64;
  if (state == kNoNode || graph.kind(state) != Kind::dict || graph.length(state) > kMostAttributes) return kNoNode;
  NodeId key = kNoNode, found = kNoNode;
  for (const NodeId node : graph.pairs(state)) {
    if (key == kNoNode) {
      key = node;
      continue;
    }
    if (graph.kind(key) == Kind::text && graph.chars(key) == name) found = node;
    key = kNoNode;
  }
  return found;
}

std::optional<RawArray> raw_array_behind(const Graph& graph, NodeId wrapper) {
  const auto element = element_of(graph, wrapper_attribute(graph, wrapper, "dtype"));
  if (!element) return std::nullopt;
  if (element->is_object) return RawArray{true, false, 0};
  const auto count = element_count(graph, wrapper_attribute(graph, wrapper, "shape"));
  const auto bytes = count ? checked_mul(*count, element->bytes) : std::nullopt;
  if (!bytes) return std::nullopt;
  const NodeId alignment = wrapper_attribute(graph, wrapper, "numpy_array_alignment_bytes");
  return RawArray{false, alignment != kNoNode && graph.kind(alignment) != Kind::none, *bytes};
}

}  // namespace ballast::pickle
