#include "llamacpp/promised_shapes.hpp"

#include <algorithm>
#include <span>
#include <vector>

namespace ballast::llamacpp {
namespace {

constexpr std::uint64_t kMostHeads = 1 << 16;  // and values of each: products cannot wrap

// What a dimension of a tensor is as long as.
enum class Extent { embedding, feed_forward, tokens, queries, keys, values, heads_of_values };

struct ShapeRow {
  std::string_view role;
  std::vector<Extent> extents;
};

// Architectures whose attention and feed-forward parts have the shapes of llama's.
constexpr std::string_view kPlain[] = {"llama",    "qwen2",     "qwen3",   "gemma",      "gemma2",  "gemma3",
                                       "olmo",     "olmo2",     "granite", "smollm3",    "cohere2", "command-r",
                                       "stablelm", "internlm2", "minicpm", "starcoder2", "mistral3"};

const std::vector<ShapeRow>& shape_rows() {
  using enum Extent;
  static const std::vector<ShapeRow> rows = {
      {"token_embd.weight", {tokens, embedding}},
      {"output.weight", {tokens, embedding}},
      {"output_norm.weight", {embedding}},
      {"attn_norm.weight", {embedding}},
      {"ffn_norm.weight", {embedding}},
      {"ffn_gate.weight", {feed_forward, embedding}},
      {"ffn_up.weight", {feed_forward, embedding}},
      {"ffn_down.weight", {embedding, feed_forward}},
      {"attn_q.weight", {queries, embedding}},
      {"attn_k.weight", {keys, embedding}},
      {"attn_v.weight", {values, embedding}},
      {"attn_output.weight", {embedding, heads_of_values}},
  };
  return rows;
}

// All heads of a block together; `length` is the key of what each has, which is usually its share of the embedding.
std::optional<std::uint64_t> of_heads(const names::Numbers& numbers, bool are_of_keys, std::string_view length,
                                      std::uint64_t block) {
  const auto queries = numbers.find_heads(block), width = numbers.find("embedding_length");
  if (!queries) return std::nullopt;
  const std::uint64_t heads = are_of_keys ? numbers.heads_of_keys(block) : *queries;
  auto each = numbers.find(length);
  if (!each && *queries != 0 && width) each = *width / *queries;
  return each && heads < kMostHeads && *each < kMostHeads ? std::optional(heads * *each) : std::nullopt;
}

std::optional<std::uint64_t> extent(const names::Numbers& numbers, std::optional<std::uint64_t> tokens, Extent what,
                                    std::uint64_t block) {
  switch (what) {
    case Extent::embedding: return numbers.find("embedding_length");
    case Extent::feed_forward: return numbers.find("feed_forward_length", block);
    case Extent::tokens: return tokens;
    case Extent::queries: return of_heads(numbers, false, "attention.key_length", block);
    case Extent::keys: return of_heads(numbers, true, "attention.key_length", block);
    case Extent::values: return of_heads(numbers, true, "attention.value_length", block);
    case Extent::heads_of_values: return of_heads(numbers, false, "attention.value_length", block);
  }
  return std::nullopt;
}

}  // namespace

PromisedShapes::PromisedShapes(const names::Architecture& architecture, const names::Numbers& numbers,
                               std::optional<std::uint64_t> tokens)
    : numbers_(numbers), tokens_(tokens), is_plain_(std::ranges::find(kPlain, architecture.gguf) != std::end(kPlain)) {}

std::optional<Shape> PromisedShapes::of(std::string_view role, std::uint64_t block) const {
  const auto& rows = shape_rows();
  const auto row = std::ranges::find(rows, role, &ShapeRow::role);
  if (!is_plain_ || row == rows.end()) return std::nullopt;
  std::vector<std::uint64_t> sizes;
  for (const Extent what : row->extents) {
    const auto size = extent(numbers_, tokens_, what, block);
    if (!size) return std::nullopt;
    sizes.push_back(*size);
  }
  return Shape(std::span<const std::uint64_t>(sizes));
}

}  // namespace ballast::llamacpp
