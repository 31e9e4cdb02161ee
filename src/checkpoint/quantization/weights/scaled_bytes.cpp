// Small integers in bytes with one scale, or one for each row: BitNet's three values, and Gemma's two or four bits.
//
//   part          BitNet                                          Gemma
//   weight        [out / 4, in]: a byte has a value of each       [out, in * bits / 8]: values of a row side by side,
//                 quarter of the rows, less 1                     the first in the low bits, less half of their range
//   weight_scale  [1]                                             [out, 1]
#include <fmt/format.h>

#include "checkpoint/quantization/weights/code_layout.hpp"
#include "checkpoint/quantization/weights/readers.hpp"

namespace ballast {
namespace {

// Four rows share a byte, so that up to three rows may be padding: the bias has a number for each row, and config.json
// has the sizes of some layers.
std::uint64_t rows_of_bitnet(const PackedModule& module, std::uint64_t most) {
  const std::string name(module.base().substr(0, module.base().rfind('.')));
  if (const Tensor* bias = module.checkpoint().find(name + ".bias")) return bias->numel();
  const std::uint64_t rows = module.outputs_by_name(name);
  return rows <= most && most - rows < 4 ? rows : most;
}

// The class "bitlinear" divides what the layer gives by the scale, "autobitlinear" multiplies the weight by it.
Tensor read_bitnet(PackedModule& module, const Tensor& weight, const Tensor& scale) {
  constexpr unsigned kQuarters = 4;
  if (weight.rank() != 2) module.complain(fmt::format("is kept in codes of shape {}", to_string(weight.shape())));
  std::vector<PackedCodes> quarters;
  for (unsigned i = 0; i < kQuarters; ++i) quarters.push_back(bit_field_codes(2 * i, 2, 1));
  PackedRows rows;
  rows.scale = one_number(scale);
  rows.dtype = module.quantization().dtype;
  if (module.text("linear_class") != "autobitlinear") {  // a value of -1, 0 or 1 may be multiplied by the inverse
    rows.scale = one_number(1.0F);
    rows.scale.divisor = scale;
  }
  const std::uint64_t row_count = rows_of_bitnet(module, widened(module, Shape{weight.shape()[0]}, kQuarters)[0]);
  return stacked_blocks(module, weight, row_count, weight.shape()[1], quarters, rows);
}

void check_rows_of_gemma(const PackedModule& module, const Tensor& scale, const Shape& shape) {
  if (shape.rank() == 2 && scale.numel() != 1) module.check_shape("_scale", scale, {shape[0], 1});
}

Tensor read_gemma(PackedModule& module, const Tensor& weight, const Tensor& scale) {
  const std::int64_t bits = module.integer("num_bits").value_or(0);
  if (bits != 2 && bits != 4) module.refuse("is kept in bytes, and no configuration says how many bits a value has");
  const Shape shape = widened(module, weight.shape(), 8 / static_cast<std::uint64_t>(bits));
  PackedRows rows{.codes = integer_codes(static_cast<unsigned>(bits), 1 << (bits - 1))};
  check_rows_of_gemma(module, scale, shape);
  rows.scale = numbers_by_shape(module, "_scale", scale, shape);
  rows.dtype = module.quantization().dtype;
  rows.scale.rounded = rows.dtype;
  return rows_of(module, weight, shape, std::move(rows));
}

// NVFP4 without a number for all scales.
Tensor read_fp4_bytes(PackedModule& module, const Tensor& weight, const Tensor& scale) {
  const Shape shape = widened(module, weight.shape(), 2);
  PackedRows rows{.codes = fp4_codes()};
  rows.scale = numbers_in_groups(module, "_scale", scale, shape, kNvGroup);
  rows.dtype = module.quantization().dtype;
  return rows_of(module, weight, shape, std::move(rows));
}

}  // namespace

Tensor read_scaled_bytes(PackedModule& module) {
  const Tensor weight = module.need(""), scale = module.need("_scale");
  module.check_numbers("_scale", scale);
  if (scale.numel() == 1) {
    if (module.scheme() != "bitnet" || module.quantization().config.is_null())
      module.refuse("is kept in bytes with one scale, and no configuration of BitNet says what they mean");
    return read_bitnet(module, weight, scale);
  }
  return scale.dtype() == DType::f8_e4m3 ? read_fp4_bytes(module, weight, scale) : read_gemma(module, weight, scale);
}

}  // namespace ballast
