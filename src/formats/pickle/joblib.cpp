#include "formats/pickle/joblib.hpp"

#include <array>
#include <charconv>
#include <string_view>
#include <vector>

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

// What a code such as "f8" or "U5" says of an element, or nothing.
std::optional<std::uint64_t> bytes_of_code(std::string_view code) {
  if (code == "?") return 1;
  std::uint64_t size = 0;
  const auto [end, error] = std::from_chars(code.data() + 1, code.data() + code.size(), size);
  if (error != std::errc() || end != code.data() + code.size() || size > (1U << 30)) return std::nullopt;
  return code[0] == 'U' ? 4 * size : size;
}

// The state that NumPy writes: (version, order, sub-array, names, fields, bytes, alignment, flags), and the unit of a
// time. NumPy believes it, so it must say of the size what the code says: of any other one, nobody can tell where
// joblib would go on.
std::optional<Element> checked_by_state(const Graph& graph, NodeId state, char kind, std::uint64_t bytes) {
  constexpr std::size_t kVersion = 0, kBytes = 5, kFlags = 7, kLength = 8, kLengthOfTime = 9;
  if (graph.kind(state) != Kind::tuple) return std::nullopt;
  if (graph.length(state) != kLength && graph.length(state) != kLengthOfTime) return std::nullopt;
  const std::vector<NodeId> items = graph.item_list(state);
  for (const std::size_t i : {kVersion, kBytes, kFlags}) {
    if (graph.kind(items[i]) != Kind::integer) return std::nullopt;
  }
  const auto number = [&](std::size_t i) { return graph[items[i]].integer; };
  const bool has_any_size = kind == 'S' || kind == 'U' || kind == 'V' || kind == 'a';
  const bool has_objects = (number(kFlags) & 1) != 0;
  if (number(kVersion) < 3) return std::nullopt;  // older ones have no flags
  if (number(kBytes) != (has_any_size ? static_cast<std::int64_t>(bytes) : -1)) return std::nullopt;
  if (has_objects && kind != 'V') return std::nullopt;
  return Element{has_objects, bytes};
}

// numpy.dtype("f8", …), which nothing but a state has changed.
std::optional<Element> element_of(const Graph& graph, NodeId dtype) {
  if (dtype == kNoNode || graph.kind(dtype) != Kind::object ||
      !graph.is_global(graph.object(dtype).callee, "numpy", "dtype"))
    return std::nullopt;
  const ObjectParts parts = graph.object(dtype);
  if (graph.is_altered(dtype) || parts.keywords != kNoNode) return std::nullopt;
  std::string_view code;
  for (const NodeId first : graph.items(parts.arguments)) {
    if (graph.kind(first) == Kind::text) code = graph.chars(first);
    break;
  }
  if (!code.empty() && std::string_view("<>=|").find(code[0]) != std::string_view::npos) code.remove_prefix(1);
  if (code.empty()) return std::nullopt;
  if (code[0] == 'O') return Element{true, 0};
  const auto bytes = bytes_of_code(code);
  if (!bytes) return std::nullopt;
  return parts.state == kNoNode ? Element{false, *bytes} : checked_by_state(graph, parts.state, code[0], *bytes);
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
