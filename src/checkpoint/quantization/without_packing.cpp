#include "checkpoint/quantization/without_packing.hpp"

#include <fmt/format.h>
#include <ballast/dequantize.hpp>

#include <utility>

namespace ballast {

Checkpoint without_packing(Checkpoint checkpoint) {
  if (!checkpoint.quantization || checkpoint.quantization->scheme == "mxfp4") return checkpoint;
  const std::string scheme = checkpoint.quantization->scheme;
  checkpoint = dequantize(std::move(checkpoint));
  if (!checkpoint.quantization)
    checkpoint.notes.push_back(
        {"", fmt::format("the weights are quantized with {}: a GGUF gets the numbers that they stand for", scheme),
         Note::Kind::remark});
  return checkpoint;
}

}  // namespace ballast
