// dequantize: weights that other programs keep quantized (GPTQ, AWQ, bitsandbytes, FP8 with scales, MXFP4, ...), as the
// numbers that they stand for.
//
// dequantize() may be called from several threads at once, and so may reads of its result. The result shares the
// storages of the parts and keeps them alive.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <ballast/checkpoint.hpp>
#include <ballast/limits.hpp>

namespace ballast {

struct DequantizeOptions {
  Limits limits{};
  bool lenient = false;  // weights whose parts contradict each other stay as their parts, with a note for each
};

// Every weight that Checkpoint::quantization speaks of becomes one tensor in the place of its parts, with the bits that
// the reference program of its scheme gives; torch's own quantized tensors become their F32 values, as densify() makes
// them. Tensors that quantize activations are left out, with a note that counts them. docs/quantized.md says which
// schemes there are, and what each gives.
//
// Lazy: the small parts that say how a weight is packed are read by this call, all others with the weight, range by
// range. Parts that contradict each other are Errc::malformed, naming the weight; a scheme that is known and not
// decoded is Errc::unsupported. A weight of which a part is missing stays as it is, with a note. What a weight has more
// than its parts must keep to limits.max_expansion_bytes, or to 1 bit becoming 32.
Checkpoint dequantize(Checkpoint checkpoint, const DequantizeOptions& options = {});

// What the weights of Checkpoint::quantization would be after dequantize(): nothing if the scheme is not decoded, or if
// parts contradict each other.
struct DequantizedSize {
  std::uint64_t weights = 0, bytes = 0;
  DType dtype = DType::bf16;  // of most of the bytes
};
std::optional<DequantizedSize> dequantized_size(const Checkpoint& checkpoint, const Limits& limits = {});

// The modules that the configuration leaves as they are, in its own words: names, beginnings of names, or patterns.
std::vector<std::string> unquantized_modules(const Quantization& quantization);

}  // namespace ballast
