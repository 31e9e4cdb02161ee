#include "checkpoint/quantization/without_packing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "checkpoint/quantization/find_packed.hpp"

namespace ballast {
namespace {

// Whether nothing is packed but blocks that stay; or, after they were made ggml's, nothing at all.
bool has_only_blocks(const Checkpoint& checkpoint, Blocks blocks) {
  if (checkpoint.quantization->scheme != "mxfp4") return false;
  return std::ranges::all_of(PackedWeights(checkpoint).all(), [&](const PackedWeight& weight) {
    return blocks == Blocks::stay && weight.row->read == read_mxfp4_blocks;
  });
}

}  // namespace

Checkpoint without_packing(Checkpoint checkpoint, Blocks blocks) {
  if (!checkpoint.quantization || has_only_blocks(checkpoint, blocks)) return checkpoint;
  const std::string scheme = checkpoint.quantization->scheme;
  checkpoint = dequantize(std::move(checkpoint), {}, blocks);
  if (checkpoint.dequantized.empty()) return checkpoint;
  const bool has_blocks = scheme == "mxfp4" && checkpoint.quantization;
  checkpoint.notes.push_back(
      {"",
       has_blocks
           ? "a GGUF gets the numbers that quantized weights stand for, but for blocks of MXFP4"
           : fmt::format("the weights are quantized with {}: a GGUF gets the numbers that they stand for", scheme),
       Note::Kind::remark});
  return checkpoint;
}

}  // namespace ballast
