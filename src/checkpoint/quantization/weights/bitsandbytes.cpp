// bitsandbytes: LLM.int8, and NF4 or FP4.
//
//   part                                   holds
//   weight                                 4 bits: codes, row by row over the whole weight, the high half of a byte
//   first,
//                                          in bytes or in elements of another dtype; 8 bits: the elements
//   weight.quant_state.bitsandbytes__nf4   JSON: quant_type, blocksize, dtype, shape, and what is said of nested scales
//   weight.quant_map                       what each of the 16 codes stands for
//   weight.absmax                          a scale for each block; or codes of scales, with nested_quant_map,
//                                          nested_absmax and a number that is added
//   SCB                                    LLM.int8: the largest value of each row
#include <fmt/format.h>

#include <algorithm>
#include <cfloat>
#include <cmath>

#include "checkpoint/quantization/weights/code_layout.hpp"
#include "checkpoint/quantization/weights/readers.hpp"
#include "core/checked.hpp"
#include "core/text.hpp"

namespace ballast {
namespace {

constexpr std::uint64_t kMostStateBytes = 64 << 10;
constexpr std::uint64_t kMostBlock = std::uint64_t{1} << 20;
constexpr float kInt8Factor = 7.874015718698502e-3F;  // 1 / 127, as the program has it

struct QuantState {
  Shape shape;
  std::uint64_t count = 0, block = 0, nested_block = 0;  // nested_block is 0 if the scales are plain
  DType dtype = DType::f16;
  float nested_offset = 0;
};

std::uint64_t block_at(const PackedModule& module, const Json& json, std::string_view key) {
  const Json& value = json.at(key);
  const std::uint64_t block = value.is_integer() && value.number() > 0 ? value.count() : 0;
  if (block >= 2 && block <= kMostBlock && (block & (block - 1)) == 0) return block;
  const std::string said = value.is_text() ? value.text() : to_string(value);
  module.complain(fmt::format("has a {} of {}", key, value.is_number() ? said : quote(said)));
}

DType dtype_at(const PackedModule& module, const Json& json) {
  const std::string& word = json.at("dtype").text();
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32})
    if (word == info(dtype).torch_name) return dtype;
  module.complain(fmt::format("has the dtype {}", quote(word)));
}

Shape shape_at(const PackedModule& module, const Json& json) {
  constexpr std::size_t kMostDimensions = 8;
  std::vector<std::uint64_t> sizes;
  for (const Json& size : json.at("shape").list()) sizes.push_back(size.count());
  if (sizes.empty() || sizes.size() > kMostDimensions) module.complain("has a shape of no or too many dimensions");
  return Shape(sizes);
}

QuantState read_state(const PackedModule& module, const Tensor& part) {
  const std::vector<std::byte> bytes = module.bytes(part, kMostStateBytes);
  try {
    const Json json = Json::parse({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    QuantState state{.shape = shape_at(module, json)};
    state.block = block_at(module, json, "blocksize");
    state.dtype = dtype_at(module, json);
    state.count = fits(state.shape.numel(), "the size of a weight");
    if (json.find("nested_blocksize") != nullptr) {
      state.nested_block = block_at(module, json, "nested_blocksize");
      const double offset = json.at("nested_offset").number();
      if (std::abs(offset) > FLT_MAX) module.complain(fmt::format("has a nested_offset of {}", offset));
      state.nested_offset = static_cast<float>(offset);
    }
    return state;
  } catch (const Error& error) {
    if (error.message().starts_with("the quantized weight")) throw;
    module.complain("has a quant_state that cannot be read: " + error.message());
  }
}

std::vector<float> read_map(const PackedModule& module, std::string_view ending, const Tensor& map,
                            std::uint64_t count) {
  if (map.dtype() != DType::f32 || map.numel() != count)
    module.complain(fmt::format("has {} of {} {}", quote(ending), name(map.dtype()), to_string(map.shape())));
  return map.values<float>();
}

// One scale for each block, made of codes if they are nested: map[code] * scale + offset, each step rounded to F32.
Tensor scales_of_blocks(PackedModule& module, const QuantState& state) {
  const Tensor scales = module.need(".absmax");
  module.check_numbers(".absmax", scales);
  if (state.nested_block == 0) {
    if (info(scales.dtype()).kind != DTypeKind::floating)
      module.complain(fmt::format("has scales of {}, and its state says nothing of nested ones", name(scales.dtype())));
    return scales;
  }
  if (scales.dtype() != DType::u8) module.complain(fmt::format("has nested scales of {}", name(scales.dtype())));
  const Tensor map = module.need(".nested_quant_map"), nested = module.need(".nested_absmax");
  module.check_numbers(".nested_absmax", nested);
  PackedRows rows{.codes = table_codes(read_map(module, ".nested_quant_map", map, 256))};
  rows.scale.values = nested;
  rows.bias = one_number(state.nested_offset);
  rows.dtype = DType::f32;
  return flat_groups(module, scales, scales.numel(), state.nested_block, std::move(rows));
}

}  // namespace

Tensor read_bnb_4bit(PackedModule& module) {
  const Tensor* nf4 = module.find(".quant_state.bitsandbytes__nf4");
  const QuantState state = read_state(module, nf4 != nullptr ? *nf4 : module.need(".quant_state.bitsandbytes__fp4"));
  const Tensor weight = module.need(""), map = module.need(".quant_map");
  const std::vector<float> values = read_map(module, ".quant_map", map, 16);
  kernels::CodeTable table;
  std::copy(values.begin(), values.end(), table.begin());
  PackedRows rows{.codes = table_codes(table, true)};
  rows.scale.values = scales_of_blocks(module, state);
  rows.dtype = state.dtype;
  return flat_groups(module, weight, state.count, state.block, std::move(rows)).reshape(state.shape);
}

Tensor read_bnb_8bit(PackedModule& module) {
  const Tensor weight = module.need(".weight"), scale = module.need(".SCB");
  if (const Tensor* format = module.find(".weight_format");
      format != nullptr && module.number(".weight_format", *format) != 0)
    module.refuse("is laid out for a kernel of a graphics card (weight_format), and not row by row");
  const bool is_one_a_row = weight.rank() == 2 && scale.numel() == weight.shape()[0] &&
                            (scale.rank() == 1 || scale.shape()[0] == scale.numel());
  if (!is_one_a_row || info(scale.dtype()).kind != DTypeKind::floating)
    module.complain(fmt::format("of shape {} has \"SCB\" of {} {}", to_string(weight.shape()), name(scale.dtype()),
                                to_string(scale.shape())));
  PackedRows rows{.codes = element_codes(DType::i8)};
  rows.scale = numbers_by_shape(module, ".SCB", scale, weight.shape());
  rows.factor = kInt8Factor;
  rows.dtype = DType::f32;
  return rows_of(module, weight, weight.shape(), std::move(rows));
}

}  // namespace ballast
