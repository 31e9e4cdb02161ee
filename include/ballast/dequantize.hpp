// dequantize: weights that other programs keep quantized (GPTQ, AWQ, bitsandbytes, FP8 with scales, MXFP4, ...), as the
// numbers that they stand for.
//
// dequantize() may be called from several threads at once, and so may reads of its result. The result shares the
// storages of the parts and keeps them alive.
#pragma once

#include <ballast/checkpoint.hpp>
#include <ballast/limits.hpp>

namespace ballast {

// Every weight of Checkpoint::quantization becomes one tensor in the place of its parts, with the bits that the
// reference program of its scheme gives; torch's own quantized tensors become their F32 values, as densify() makes
// them. Tensors that quantize activations are left out, with a note that counts them. docs/quantized.md says which
// schemes there are, and what each gives.
//
// Lazy: the small parts that say how a weight is packed are read by this call, all others with the weight, range by
// range. Parts that contradict each other are Errc::malformed, naming the weight; a scheme that is known and not
// decoded is Errc::unsupported. What the weights are more than their parts must keep to limits.max_expansion_bytes or
// limits.max_expansion_ratio, weight by weight.
Checkpoint dequantize(Checkpoint checkpoint, const Limits& limits = {});

}  // namespace ballast
