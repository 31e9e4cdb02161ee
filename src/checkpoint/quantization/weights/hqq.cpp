// HQQ: a weight becomes a matrix of groups, whose codes lie in blocks of rows in the same bytes or words.
//
//   part                holds
//   W_q                 bytes, each with a code of every block of rows, the first in its high bits; 3 bits: words; all
//   of
//                       them may be called floats
//   scale, zero         [groups, 1] or [1, groups], by the axis
//   nbits, axis, shape, packing, compute_dtype, view_as_float
//                       values: tensors in a safetensors file, values in a pickle
#include <fmt/format.h>

#include "checkpoint/quantization/weights/code_layout.hpp"
#include "checkpoint/quantization/weights/readers.hpp"
#include "core/checked.hpp"
#include "core/text.hpp"

namespace ballast {
namespace {

// HqqSettings that the weight does not depend on, and what a loader says of itself.
constexpr std::string_view kOthers[] = {".group_size",    ".channel_wise", ".encoded_state_dict",  ".offload_meta",
                                        ".optimize",      ".round_zero",   ".stores_quant_config", ".unpack_view_dtype",
                                        ".view_as_float", ".quant_scale",  ".quant_zero",          ".quant_zero_scale"};
// Scales that are quantized themselves.
constexpr std::string_view kNested[] = {".scale_q", ".zero_q", ".meta_scale", ".meta_zero", ".zero_scale"};

struct HqqSettings {
  unsigned bits = 0;
  std::int64_t axis = 1;
  Shape shape;
  DType dtype = DType::f16;
};

Shape hqq_shape_of(PackedModule& module) {
  const std::vector<std::int64_t> sizes = module.setting_list(".shape");
  std::vector<std::uint64_t> dimensions;
  for (const std::int64_t size : sizes) {
    if (size <= 0) module.complain(fmt::format("has a dimension of {}", size));
    dimensions.push_back(static_cast<std::uint64_t>(size));
  }
  if (dimensions.size() != 2) module.complain(fmt::format("has {} dimensions", dimensions.size()));
  return Shape(dimensions);
}

HqqSettings read_hqq_settings(PackedModule& module) {
  HqqSettings settings;
  const std::int64_t bits = module.setting(".nbits");
  if (bits != 1 && bits != 2 && bits != 3 && bits != 4 && bits != 8)
    module.refuse(fmt::format("has codes of {} bits", bits));
  settings.bits = static_cast<unsigned>(bits);
  settings.axis = module.setting(".axis");
  if (settings.axis != 0 && settings.axis != 1) module.complain(fmt::format("has the axis {}", settings.axis));
  settings.shape = hqq_shape_of(module);
  const std::string packing = module.setting_text(".packing");
  const std::string_view expected[] = {"", "1bit_u8", "2bit_u8", "3bit_32", "4bit_u8", "", "", "", "8bit_u8"};
  if (packing != expected[settings.bits]) module.refuse(fmt::format("is packed as {}", quote(packing)));
  std::string dtype = module.setting_text(".compute_dtype");
  if (dtype.starts_with("torch.")) dtype.erase(0, 6);
  bool is_known = false;
  for (const DType known : {DType::f16, DType::bf16, DType::f32}) {
    if (dtype != info(known).torch_name) continue;
    settings.dtype = known;
    is_known = true;
  }
  if (!is_known) module.complain(fmt::format("has the dtype {}", quote(dtype)));
  return settings;
}

std::vector<PackedCodes> blocks_of(unsigned bits) {
  constexpr unsigned kWordBlocks = 10;
  std::vector<PackedCodes> blocks;
  if (bits == 3) {
    for (unsigned i = 0; i < kWordBlocks; ++i) blocks.push_back(word_field_codes(3 * (kWordBlocks - 1 - i), 3));
    return blocks;
  }
  if (bits == 8) return {integer_codes(8, 0)};
  for (unsigned i = 0; i < 8 / bits; ++i) blocks.push_back(bit_field_codes(8 - bits * (i + 1), bits, 0));
  return blocks;
}

}  // namespace

Tensor read_hqq(PackedModule& module) {
  for (const std::string_view ending : kNested)
    if (module.checkpoint().find(std::string(module.base()) + std::string(ending)) != nullptr)
      module.refuse("has scales that are quantized themselves");
  const Tensor packed = module.need(".W_q"), scale = module.need(".scale"), zero = module.need(".zero");
  const HqqSettings settings = read_hqq_settings(module);
  for (const std::string_view ending : kOthers) module.find(ending);

  const std::uint64_t count = fits(settings.shape.numel(), "the size of a weight");
  module.check_shape(".zero", zero, scale.shape());
  const bool by_rows = settings.axis == 1;
  const std::uint64_t groups = scale.numel();
  if (groups == 0 || count % groups != 0)
    module.complain(fmt::format("of shape {} has {} groups", to_string(settings.shape), groups));
  module.check_shape(".scale", scale, by_rows ? Shape{groups, 1} : Shape{1, groups});
  const std::uint64_t rows = by_rows ? groups : count / groups, columns = count / rows;

  // Codes that are called floats are words of as many bytes as always: two or four bytes then lie side by side.
  const std::uint64_t width = settings.bits == 3 ? 4 : 1;
  const Tensor bytes = byte_view(module, packed);
  const std::uint64_t line = checked_mul(columns, width).value_or(0);
  if (line == 0 || bytes.nbytes() % line != 0)
    module.complain(
        fmt::format("of {} columns is kept in {} {}", columns, name(packed.dtype()), to_string(packed.shape())));
  const Tensor codes(width == 4 ? DType::i32 : DType::u8, {bytes.nbytes() / line, columns}, bytes.storage(),
                     bytes.offset());

  PackedRows matrix;
  matrix.dtype = settings.dtype;
  matrix.rounded = settings.dtype;
  module.check_numbers(".scale", scale);
  module.check_numbers(".zero", zero);
  const auto numbers = [&](const Tensor& values) {
    if (by_rows) return GroupNumbers{.values = values, .columns_each = columns};
    return GroupNumbers{.values = values, .in_line = groups, .rows_each = GroupNumbers::kAll};
  };
  matrix.scale = numbers(scale);
  matrix.zero = numbers(zero);
  return stacked_blocks(module, codes, rows, columns, blocks_of(settings.bits), matrix).reshape(settings.shape);
}

}  // namespace ballast
