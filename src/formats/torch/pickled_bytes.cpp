#include "formats/torch/pickled_bytes.hpp"

#include <fmt/format.h>
#include <ballast/error.hpp>

#include "core/remedy.hpp"
#include "formats/torch/calls.hpp"
#include "formats/torch/latin1_storage.hpp"
#include "io/section.hpp"
#include "tensor/source_storage.hpp"

namespace ballast::torch {
namespace {

using pickle::Graph;
using pickle::Kind;
using pickle::kNoNode;
using pickle::NodeId;

struct Spelling {
  NodeId chars = kNoNode;  // kNoNode means that there are no bytes
  bool is_latin1_text = false;
};

bool is_chars(Kind kind) { return kind == Kind::bytes || kind == Kind::bytearray || kind == Kind::text; }

std::optional<Spelling> spelling_of(const Graph& graph, NodeId node) {
  if (is_chars(graph.kind(node))) return Spelling{node, false};
  // bytearray(_codecs.encode("…", "latin1")) is the deepest nesting that Python writes.
  for (int depth = 0; depth < 2; ++depth) {
    const auto callee = callee_of(graph, node);
    if (!callee) return std::nullopt;
    const NodeId argument = first_argument(graph, node);
    const bool is_class = callee->is("builtins", "bytes") || callee->is("builtins", "bytearray");
    if (is_class && argument == kNoNode) return Spelling{};
    if ((!is_class && !callee->is("_codecs", "encode")) || argument == kNoNode) return std::nullopt;
    if (is_chars(graph.kind(argument))) return Spelling{argument, graph.kind(argument) == Kind::text};
    if (!is_class) return std::nullopt;
    node = argument;
  }
  return std::nullopt;
}

std::span<const std::byte> as_bytes(std::string_view chars) { return std::as_bytes(std::span(chars)); }

std::vector<std::byte> near_bytes(const Graph& graph, const Spelling& spelling) {
  const std::string_view chars = graph.chars(spelling.chars);
  if (spelling.is_latin1_text) return decode_latin1(chars);
  const auto bytes = as_bytes(chars);
  return {bytes.begin(), bytes.end()};
}

[[noreturn]] void throw_wrong_size(const Graph& graph, NodeId node, std::uint64_t found, std::uint64_t wanted) {
  throw Error(Errc::malformed, fmt::format("{} bytes in a pickle where {} are needed", found, wanted))
      .at_byte(graph[node].offset);
}

}  // namespace

bool is_pickled_bytes(const Graph& graph, NodeId node) { return spelling_of(graph, node).has_value(); }

std::optional<std::uint64_t> pickled_length(const Graph& graph, NodeId node) {
  const auto spelling = spelling_of(graph, node);
  if (!spelling) return std::nullopt;
  return spelling->chars == kNoNode ? 0 : graph.length(spelling->chars);
}

StoragePtr pickled_bytes(const Graph& graph, NodeId node, std::uint64_t size_bytes) {
  const auto spelling = spelling_of(graph, node);
  if (!spelling) throw Error(Errc::malformed, "no bytes where bytes are needed").at_byte(graph[node].offset);
  if (spelling->chars == kNoNode || !graph[spelling->chars].is_far) {
    auto bytes = spelling->chars == kNoNode ? std::vector<std::byte>() : near_bytes(graph, *spelling);
    if (bytes.size() != size_bytes) throw_wrong_size(graph, node, bytes.size(), size_bytes);
    return memory_storage(std::move(bytes));
  }
  const std::uint64_t first = graph[spelling->chars].offset, length = graph.length(spelling->chars);
  if (!spelling->is_latin1_text) {
    if (length != size_bytes) throw_wrong_size(graph, node, length, size_bytes);
    return source_storage(graph.source(), first, length);
  }
  if (length < size_bytes || length / 2 > size_bytes) throw_wrong_size(graph, node, length, size_bytes);
  return latin1_storage(graph.source(), first, length, size_bytes);
}

SourcePtr pickled_bytes_source(const Graph& graph, NodeId node, const Limits& limits) {
  const std::string name = fmt::format("{}@{}", graph.source()->name(), graph[node].offset);
  const auto spelling = spelling_of(graph, node);
  if (!spelling) throw Error(Errc::malformed, "no bytes where bytes are needed").at_byte(graph[node].offset);
  if (spelling->chars == kNoNode) return memory_source({}, name);
  const pickle::Node& chars = graph[spelling->chars];
  if (!chars.is_far) return memory_source(near_bytes(graph, *spelling), name);
  const std::uint64_t length = graph.length(spelling->chars);
  if (!spelling->is_latin1_text) return io::section(graph.source(), chars.offset, length, name);
  if (length > limits.max_inflated_bytes) {
    throw Error(Errc::limit, fmt::format("{} bytes of text hold a file of their own, more than the {} allowed", length,
                                         limits.max_inflated_bytes))
        .at_byte(chars.offset)
        .hint(raise_limit("max_inflated_bytes"));
  }
  return memory_source(decode_latin1(graph.read_chars(spelling->chars)), name);
}

}  // namespace ballast::torch
