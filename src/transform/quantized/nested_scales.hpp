// The scales of NF4, quantized themselves, as bitsandbytes does it: each is a code of 8 bits, times a scale for 256 of
// them, plus the mean of all scales of the weight.
#pragma once

#include <string>

#include <ballast/tensor.hpp>

namespace ballast {

struct NestedScales {
  Tensor codes;   // U8, a code for each scale
  Tensor scales;  // F32, one for 256 codes
  Tensor map;     // F32, what the 256 codes mean
  Tensor state;   // U8, the text, with the mean in it
};

// `scales` are F32, of one dimension. `state` is a JSON object without its closing brace. The mean is found when the
// first byte of the codes, the scales or the state is read, which reads all scales once; nothing else is kept.
NestedScales nested_scales(const Tensor& scales, const std::string& state);

}  // namespace ballast
