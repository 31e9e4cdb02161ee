// quanto: elements of 8 bits with a scale for each row, or codes of 4 or 2 bits in groups.
//
//   part                  holds
//   weight._data          [out, in]: integers or FP8
//   weight._data._data    bytes: each has a code of every block of the rows of groups, the first in its low bits
//   weight._scale         [out, 1], or [groups, 1]
//   weight._shift         [groups, 1]: taken away from the product if it is a float, and from the code if it is not
#include <fmt/format.h>

#include <array>

#include "checkpoint/quantization/weights/code_layout.hpp"
#include "checkpoint/quantization/weights/readers.hpp"
#include "core/checked.hpp"

namespace ballast {
namespace {

DType dtype_of_quanto(const PackedModule& module, const Tensor& scale) {
  const DType dtype = scale.dtype();
  if (dtype != DType::f16 && dtype != DType::bf16 && dtype != DType::f32)
    module.complain(fmt::format("has scales of {}", name(dtype)));
  return dtype;
}

// quanto's groups are of 128 elements, or of 96, 64 or 32 if these divide a row. So another size is that of a row.
bool may_be_part_of_row(std::uint64_t group) { return group == 128 || group == 96 || group == 64 || group == 32; }

// Codes are kept by groups, and no part says how many of them make up a row: the bias has a number for each row, and
// config.json has the sizes of some layers.
std::uint64_t row_count(const PackedModule& module, std::uint64_t groups, std::uint64_t group) {
  const auto is_right = [&](std::uint64_t rows) { return rows != 0 && groups % rows == 0; };
  const std::string module_name(module.base().substr(0, module.base().rfind('.')));
  if (const Tensor* bias = module.checkpoint().find(module_name + ".bias"); bias != nullptr && is_right(bias->numel()))
    return bias->numel();
  if (!may_be_part_of_row(group)) return groups;
  const std::uint64_t inputs = module.inputs_by_name(module_name);
  if (const auto count = checked_mul(groups, group);
      inputs != 0 && inputs % group == 0 && count && *count % inputs == 0)
    return *count / inputs;
  module.refuse("is kept in groups, and neither a bias nor config.json says how many of them are a row");
}

Tensor read_codes(PackedModule& module, const Tensor& codes) {
  const Tensor scale = module.need("._scale"), shift = module.need("._shift");
  if (codes.rank() != 2 || codes.dtype() != DType::u8 || codes.shape()[1] == 0)
    module.complain(fmt::format("is kept in {} {}", name(codes.dtype()), to_string(codes.shape())));
  const std::uint64_t each = codes.shape()[0], group = codes.shape()[1], groups = scale.numel();
  const std::uint64_t in_byte = each == 0 ? 0 : groups / each + (groups % each != 0);
  if (in_byte != 2 && in_byte != 4)
    module.complain(fmt::format("has {} scales for codes of shape {}", groups, to_string(codes.shape())));
  module.check_shape("._scale", scale, {groups, 1});
  module.check_shape("._shift", shift, {groups, 1});
  const unsigned bits = 8 / static_cast<unsigned>(in_byte);
  if (const std::string_view said = module.text("weights");
      (said == "int2" || said == "int4") && said[3] - '0' != int(bits))
    module.complain(fmt::format("has {} scales for codes of shape {}, which do not fit the {} of its configuration",
                                groups, to_string(codes.shape()), said));
  std::vector<PackedCodes> blocks;
  for (unsigned i = 0; i < in_byte; ++i) blocks.push_back(bit_field_codes(i * bits, bits, 0));

  PackedRows rows;
  rows.dtype = dtype_of_quanto(module, scale);
  rows.scale = numbers_by_shape(module, "._scale", scale, {groups, group});
  GroupNumbers shifts = numbers_by_shape(module, "._shift", shift, {groups, group});
  if (info(shift.dtype()).kind == DTypeKind::floating) {
    rows.bias = std::move(shifts);
    rows.subtracts_bias = true;
  } else {
    rows.zero = std::move(shifts);
  }
  rows.rounded = rows.dtype;
  const Tensor whole = stacked_blocks(module, codes, groups, group, blocks, rows);
  const std::uint64_t out = row_count(module, groups, group);
  return whole.reshape({out, groups / out * group});
}

}  // namespace

Tensor read_quanto(PackedModule& module) {
  if (const Tensor* codes = module.find("._data._data")) return read_codes(module, *codes);
  const Tensor data = module.need("._data"), scale = module.need("._scale");
  const bool is_element = data.dtype() == DType::i8 || info(data.dtype()).kind == DTypeKind::floating;
  if (!is_element) module.complain(fmt::format("is kept in elements of {}", name(data.dtype())));
  if (data.rank() == 2 && scale.numel() != 1) module.check_shape("._scale", scale, {data.shape()[0], 1});
  PackedRows rows{.codes = element_codes(data.dtype())};
  rows.scale = numbers_by_shape(module, "._scale", scale, data.shape());
  rows.dtype = dtype_of_quanto(module, scale);
  return rows_of(module, data, data.shape(), std::move(rows));
}

}  // namespace ballast
