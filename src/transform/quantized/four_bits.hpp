// Tensors as codes of four bits with a scale for each block of values, made as they are read: NF4 as bitsandbytes has
// it, MXFP4 as gpt-oss and compressed-tensors have it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ballast/tensor.hpp>

namespace ballast {

// Tensors that stand for one, by what is added to its name.
using NamedParts = std::vector<std::pair<std::string, Tensor>>;

// What bitsandbytes calls the dtype that the values get when they are decoded; DType::f32 if it knows no such dtype.
DType nf4_result(DType dtype);

// The parts of a weight of any shape that is not empty. Blocks of 64 cross rows; the last may be short. Nothing is read
// by this call. With `is_nested`, the scales are quantized, too: they are found by prepare(), and kept, which takes a
// byte for each block.
NamedParts nf4_parts(const Tensor& weight, bool is_nested);

// Codes U8 [..., columns / 32, 16] and exponents U8 [..., columns / 32]. The last dimension is whole blocks of 32, and
// the tensor is not empty.
struct Mxfp4Blocks {
  Tensor codes, scales;
};
Mxfp4Blocks mxfp4_blocks(const Tensor& tensor);

}  // namespace ballast
