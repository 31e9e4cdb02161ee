// The readers of all schemes: each makes the weight that the tensors of a module stand for.
//
// A reader is lazy. It throws Errc::malformed if parts contradict each other, Errc::unsupported for what it does not
// read, and MissingPart if a part is not there.
#pragma once

#include "checkpoint/quantization/weights/module.hpp"

namespace ballast {

using WeightReader = Tensor (*)(PackedModule& module);

Tensor read_gptq(PackedModule& module);          // also AWQ, which has the same names
Tensor read_bnb_4bit(PackedModule& module);      // bitsandbytes' NF4 and FP4
Tensor read_bnb_8bit(PackedModule& module);      // bitsandbytes' LLM.int8
Tensor read_scaled(PackedModule& module);        // FP8 or I8 with `_scale_inv` or `_scale`
Tensor read_mistral_fp8(PackedModule& module);   // `qscale_weight`
Tensor read_comfy_fp8(PackedModule& module);     // `scale_weight`
Tensor read_modelopt_fp4(PackedModule& module);  // NVFP4 with `_scale_2`
Tensor read_scaled_bytes(PackedModule& module);  // U8 with `_scale`: BitNet, or Gemma's integers
Tensor read_mxfp4_blocks(PackedModule& module);  // gpt-oss
Tensor read_packed(PackedModule& module);        // compressed-tensors' `_packed`
Tensor read_bitmask(PackedModule& module);       // compressed-tensors' sparse weights
Tensor read_mlx(PackedModule& module);           // also transformers' metal
Tensor read_hqq(PackedModule& module);
Tensor read_quanto(PackedModule& module);
Tensor read_torchao(PackedModule& module);

}  // namespace ballast
