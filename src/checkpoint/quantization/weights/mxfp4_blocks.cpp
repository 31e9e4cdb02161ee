// gpt-oss: experts in MXFP4. Transformers holds them with the last two dimensions exchanged.
//
//   part      holds (OpenAI's own files have a point before both names)
//   _blocks   [experts, out, groups, 16]: 32 values in 16 bytes, the low half of a byte first
//   _scales   [experts, out, groups]: bytes x, for 2^(x - 127)
#include <fmt/format.h>

#include "checkpoint/quantization/weights/code_layout.hpp"
#include "checkpoint/quantization/weights/readers.hpp"
#include "core/checked.hpp"
#include "tensor/packed/transposed_storage.hpp"

namespace ballast {
namespace {

constexpr std::uint64_t kGroup = 32, kGroupBytes = 16;

}  // namespace

Tensor read_mxfp4_blocks(PackedModule& module) {
  const Tensor* own = module.find(".blocks");
  const std::string ending = own != nullptr ? ".scales" : "_scales";
  const Tensor blocks = own != nullptr ? *own : module.need("_blocks"), scales = module.need(ending);
  const Shape& shape = blocks.shape();
  const std::size_t rank = shape.rank();
  const bool has_experts = rank == 4;
  if ((rank != 3 && rank != 4) || shape[rank - 1] != kGroupBytes)
    module.complain(fmt::format("has blocks of shape {}", to_string(shape)));
  module.check_shape(ending, scales, Shape(std::span(shape.begin(), rank - 1)));
  if (scales.dtype() != DType::u8) module.complain(fmt::format("has scales of {}", name(scales.dtype())));
  const std::uint64_t experts = has_experts ? shape[0] : 1, rows = shape[rank - 3], groups = shape[rank - 2];
  const auto columns = checked_mul(groups, kGroup);
  if (!columns) module.complain(fmt::format("of shape {} does not fit 64 bits", to_string(shape)));
  const Shape result = has_experts ? Shape{experts, *columns, rows} : Shape{*columns, rows};
  if (blocks.numel() == 0) return Tensor(DType::bf16, result, nullptr);

  // With inputs before outputs, a row of bytes has the codes of two inputs, and 32 inputs share a row of scales.
  const std::uint64_t row_bytes = groups * kGroupBytes;
  PackedRows packed;
  packed.packed = transposed(byte_view(module, blocks).reshape({experts * rows, row_bytes}), experts);
  packed.row_bytes = packed.columns = rows;
  packed.rows_in_byte = 2;
  packed.scheme = std::string(module.scheme());
  packed.weight = std::string(module.weight());
  packed.dtype = DType::bf16;
  // A scale of 255 stands for 2^128, which is no float: so the values are doubled, and the scales halved.
  packed.codes = doubled_fp4_codes();
  packed.codes.bits = 8;
  packed.codes.field.mask = 15;
  packed.scale = {.values = transposed(scales.reshape({experts * rows, groups}), experts),
                  .in_line = rows,
                  .rows_each = kGroup,
                  .exponent_bias = 128};
  return unpacked_rows(std::move(packed)).reshape(result);
}

}  // namespace ballast
