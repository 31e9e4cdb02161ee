// Weights that lie element by element, with scales beside them: FP8 and integers of 8 bits, and FP4 in bytes.
//
//   part                      holds
//   weight                    the elements; FP4 has two in a byte, the low half first
//   weight_scale_inv, _scale  one number, one for each row, or one for each block; it multiplies, whatever it is called
//   weight_zero_point         integers that are taken away first
//   weight_scale_2            NVFP4: a number that multiplies the scales
#include <fmt/format.h>

#include "checkpoint/quantization/weights/code_layout.hpp"
#include "checkpoint/quantization/weights/readers.hpp"

namespace ballast {
namespace {

// What a configuration says of blocks: transformers' [rows, columns], or those of compressed-tensors' groups.
std::optional<BlockSize> block_size(const PackedModule& module) {
  const auto pair_at = [](const Json* config, std::string_view key) -> std::optional<BlockSize> {
    const Json* found = config != nullptr ? config->find(key) : nullptr;
    if (found == nullptr || !found->is_list() || found->list().size() != 2) return std::nullopt;
    const Json &rows = found->list()[0], &columns = found->list()[1];
    if (!rows.is_integer() || !columns.is_integer() || rows.number() < 1 || columns.number() < 1) return std::nullopt;
    return BlockSize{rows.count(), columns.count()};
  };
  if (auto block = pair_at(&module.quantization().config, "weight_block_size")) return block;
  for (const Json* weights : module.weight_settings())
    if (auto block = pair_at(weights, "block_structure")) return block;
  return std::nullopt;
}

// Programs of NVIDIA and of FP8's own schemes give the model's dtype, compressed-tensors that of the scales.
DType dtype_of_scaled(const PackedModule& module, DType scales) {
  const std::string_view scheme = module.scheme();
  if (scheme != "compressed-tensors" && scheme != "int8") return module.quantization().dtype;
  const bool is_float = scales == DType::f16 || scales == DType::bf16 || scales == DType::f32;
  return is_float ? scales : DType::bf16;
}

GroupNumbers scales_of_elements(const PackedModule& module, std::string_view ending, const Tensor& scale,
                                const Shape& shape) {
  GroupNumbers numbers = numbers_by_shape(module, ending, scale, shape, block_size(module));
  if (scale.dtype() == DType::u8) numbers.exponent_bias = 127;
  return numbers;
}

// Compressed-tensors' groups in the order of activations. A first group of -1 says that there are none.
void refuse_groups_of_columns(PackedModule& module) {
  const Tensor* group_of = module.find("_g_idx");
  if (group_of != nullptr && group_of->numel() != 0 && module.number("_g_idx", *group_of) >= 0)
    module.refuse("has groups of columns that do not follow each other (\"_g_idx\")");
}

Tensor read_elements(PackedModule& module, const Tensor& weight, std::string_view ending, const Tensor& scale) {
  if (module.scheme() == "bitnet") module.complain(fmt::format("is kept in elements of {}", name(weight.dtype())));
  PackedRows rows{.codes = element_codes(weight.dtype())};
  rows.scale = scales_of_elements(module, ending, scale, weight.shape());
  rows.dtype = dtype_of_scaled(module, scale.dtype());
  const Tensor* zero = module.find("_zero_point");
  module.check_weight_settings(weight.shape(), scale, zero != nullptr);
  if (module.scheme() == "gemma") rows.scale.rounded = rows.dtype;
  if (zero != nullptr) {
    rows.zero = numbers_by_shape(module, "_zero_point", *zero, weight.shape(), block_size(module));
    rows.rounded = rows.dtype;
  }
  return rows_of(module, weight, weight.shape(), std::move(rows));
}

// A weight of a module whose scale has a name of its own; other numbers there are of activations.
Tensor read_named(PackedModule& module, std::string_view ending, std::string_view of_activations) {
  module.find(of_activations);
  const Tensor weight = module.need(".weight"), scale = module.need(ending);
  return read_elements(module, weight, ending, scale);
}

}  // namespace

Tensor read_scaled(PackedModule& module) {
  const Tensor* inverse = module.find("_scale_inv");
  const std::string_view ending = inverse != nullptr ? "_scale_inv" : "_scale";
  const Tensor weight = module.need(""), scale = inverse != nullptr ? *inverse : module.need(ending);
  if (!module.weight_settings().empty()) refuse_groups_of_columns(module);
  if (inverse == nullptr || weight.dtype() != DType::i8) return read_elements(module, weight, ending, scale);
  const Shape shape = widened(module, weight.shape(), 2);
  PackedRows rows{.codes = fp4_codes()};
  rows.scale = scales_of_elements(module, ending, scale, shape);
  rows.dtype = module.quantization().dtype;
  return rows_of(module, weight, shape, std::move(rows));
}

Tensor read_mistral_fp8(PackedModule& module) { return read_named(module, ".qscale_weight", ".qscale_act"); }

Tensor read_comfy_fp8(PackedModule& module) { return read_named(module, ".scale_weight", ".scale_input"); }

Tensor read_modelopt_fp4(PackedModule& module) {
  const Tensor weight = module.need(""), scale = module.need("_scale"), all = module.need("_scale_2");
  const Shape shape = widened(module, weight.shape(), 2);
  if (all.numel() != 1) module.complain(fmt::format("has \"_scale_2\" of shape {}", to_string(all.shape())));
  module.check_numbers("_scale_2", all);
  PackedRows rows{.codes = fp4_codes()};
  rows.scale = numbers_in_groups(module, "_scale", scale, shape, kNvGroup);
  rows.scale.multiplier = all;
  rows.dtype = module.quantization().dtype;
  return rows_of(module, weight, shape, std::move(rows));
}

}  // namespace ballast
