// compressed-tensors: integers in words, FP4 in bytes, and weights of which only the values that are not zero are kept.
//
//   part                  holds
//   weight_packed         words: the codes of a row are a stream of bits, each code plus half of its range; or bytes of
//   FP4 weight_shape          [out, in] weight_scale          one number, one for each row, or one for each group of a
//   row weight_zero_point     words: as weight_packed, but along the columns weight_g_idx          [in]: the group of
//   each column weight_global_scale   NVFP4: the scales are divided by it weight.compressed     the values that are not
//   zero, row by row weight.bitmask        [out, in / 8]: a bit for each element, the lowest first, set if the element
//   is one of them
#include <fmt/format.h>

#include <algorithm>

#include "checkpoint/quantization/weights/code_layout.hpp"
#include "checkpoint/quantization/weights/readers.hpp"
#include "core/checked.hpp"
#include "tensor/packed/bitmask_storage.hpp"
#include "tensor/packed/column_codes.hpp"

namespace ballast {
namespace {

constexpr unsigned kMostBits = 8;

std::uint64_t quotient(std::uint64_t count, std::uint64_t each) { return count / each + (count % each != 0); }

// How codes lie in words. Releases before 0.15 kept as many whole codes in each word as it has room for; for 1, 2, 4
// and 8 bits that is the same.
struct Packing {
  unsigned bits;
  unsigned in_word;  // 0: a stream of bits
};

std::optional<Packing> packing_of(unsigned bits, std::uint64_t codes, std::uint64_t words) {
  if (bits < 1 || bits > kMostBits) return std::nullopt;
  if (words_for(codes, bits) == words) return Packing{bits, 0};
  if (quotient(codes, 32 / bits) == words) return Packing{bits, 32 / bits};
  return std::nullopt;
}

// What a configuration says if it fits, else the only number of bits that does.
Packing packing_of(const PackedModule& module, std::uint64_t columns, std::uint64_t words) {
  for (const Json* weights : module.weight_settings()) {
    const Json* bits = weights->find("num_bits");
    if (bits == nullptr || !bits->is_integer() || bits->number() < 1 || bits->number() > kMostBits) continue;
    if (const auto packing = packing_of(static_cast<unsigned>(bits->count()), columns, words)) return *packing;
  }
  const auto says_bits = [](const Json* weights) { return weights->find("num_bits") != nullptr; };
  if (!module.weight_settings().empty() && std::ranges::all_of(module.weight_settings(), says_bits))
    module.complain(
        fmt::format("has {} columns in {} words, which fit no number of bits in config_groups", columns, words));
  std::optional<Packing> only;
  for (unsigned bits = 1; bits <= kMostBits; ++bits) {
    const auto packing = packing_of(bits, columns, words);
    if (packing && only) module.refuse("is packed in words, and no configuration says how many bits a value has");
    if (packing) only = packing;
  }
  if (!only) module.complain(fmt::format("has {} columns in {} words", columns, words));
  return *only;
}

std::optional<BlockSize> group_size(const PackedModule& module, std::uint64_t columns, std::uint64_t groups) {
  for (const Json* weights : module.weight_settings()) {
    const Json* size = weights->find("group_size");
    if (size == nullptr || !size->is_integer() || size->number() < 1) continue;
    if (quotient(columns, size->count()) == groups) return BlockSize{1, size->count()};
  }
  return std::nullopt;
}

GroupNumbers numbers_of(const PackedModule& module, std::string_view ending, const Tensor& numbers, const Shape& shape,
                        const Tensor* group_of) {
  if (group_of != nullptr) {
    module.check_numbers(ending, numbers);
    if (numbers.rank() != 2 || numbers.shape()[0] != shape[0] || numbers.shape()[1] == 0)
      module.complain(fmt::format("has {} of shape {}", ending, to_string(numbers.shape())));
    return {.values = numbers, .in_line = numbers.shape()[1], .group_of = *group_of};
  }
  const bool is_matrix = numbers.rank() == 2;
  return numbers_by_shape(module, ending, numbers, shape,
                          is_matrix ? group_size(module, shape[1], numbers.shape()[1]) : std::nullopt);
}

// The groups of the columns; null if they follow each other. A group of -1 everywhere says that, too.
const Tensor* groups_of_columns(PackedModule& module, std::uint64_t columns) {
  const Tensor* group_of = module.find("_g_idx");
  if (group_of == nullptr) return nullptr;
  if (group_of->dtype() != DType::i32 || group_of->rank() != 1 || group_of->numel() != columns)
    module.complain(fmt::format("has \"_g_idx\" of {} {}", name(group_of->dtype()), to_string(group_of->shape())));
  return columns != 0 && module.number("_g_idx", *group_of) < 0 ? nullptr : group_of;
}

// Zero points lie in words along the rows: the codes of a column follow each other.
Tensor zero_points(PackedModule& module, const Tensor& zeros, const Shape& groups, const Packing& packing) {
  if (info(zeros.dtype()).block_bytes != 4) {  // one each
    module.check_numbers("_zero_point", zeros);
    return zeros;
  }
  const std::uint64_t words =
      packing.in_word != 0 ? quotient(groups[0], packing.in_word) : words_for(groups[0], packing.bits);
  module.check_shape("_zero_point", zeros, {words, groups[1]});
  return column_codes(zeros, groups[0], packing.bits, packing.in_word);
}

Tensor read_integers(PackedModule& module, const Tensor& packed) {
  const Tensor sizes = module.need("_shape"), scale = module.need("_scale");
  const std::int64_t rows = module.number("_shape", sizes, 0), columns = module.number("_shape", sizes, 1);
  if (rows <= 0 || columns <= 0) module.complain(fmt::format("has the shape [{}, {}]", rows, columns));
  const Shape shape = {static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(columns)};
  if (packed.rank() != 2 || packed.shape()[0] != shape[0] || info(packed.dtype()).block_bytes != 4)
    module.complain(
        fmt::format("of shape {} is kept in {} {}", to_string(shape), name(packed.dtype()), to_string(packed.shape())));
  const Packing packing = packing_of(module, shape[1], packed.shape()[1]);
  const int center = 1 << (packing.bits - 1);
  const Tensor* group_of = groups_of_columns(module, shape[1]);
  module.check_weight_settings(shape, scale, module.find("_zero_point") != nullptr);

  PackedRows weight{.row_bytes = packed.shape()[1] * 4, .codes = integer_codes(packing.bits, center)};
  weight.codes.in_word = packing.in_word;
  weight.scale = numbers_of(module, "_scale", scale, shape, group_of);
  weight.dtype = scale.dtype();
  if (weight.dtype != DType::f16 && weight.dtype != DType::bf16 && weight.dtype != DType::f32)
    module.complain(fmt::format("has scales of {}", name(weight.dtype)));
  if (const Tensor* zeros = module.find("_zero_point")) {
    const Shape groups = scale.rank() == 2 ? scale.shape() : Shape{scale.numel(), 1};
    const Tensor points = zero_points(module, *zeros, groups, packing);
    if (group_of != nullptr) module.check_shape("_zero_point", points, groups);
    weight.zero = numbers_of(module, "_zero_point", points, shape, group_of);
    weight.rounded = weight.dtype;
    // Both codes have half of their range added; integers of 8 bits are kept as they are.
    if (points.dtype() == DType::u8) weight.codes = integer_codes(packing.bits, 0);
    weight.codes.in_word = packing.in_word;
  }
  return rows_of(module, packed, shape, std::move(weight));
}

Tensor read_packed_fp4(PackedModule& module, const Tensor& packed) {
  const Tensor scale = module.need("_scale");
  const Shape shape = widened(module, packed.shape(), 2);
  PackedRows rows{.codes = fp4_codes()};
  rows.scale = numbers_in_groups(module, "_scale", scale, shape, scale.dtype() == DType::u8 ? kMxGroup : kNvGroup);
  rows.scale.rounded = DType::bf16;
  rows.dtype = DType::bf16;
  if (scale.dtype() == DType::u8) {
    rows.scale.exponent_bias = 127;
  } else {
    const Tensor all = module.need("_global_scale");
    if (all.numel() != 1) module.complain(fmt::format("has \"_global_scale\" of shape {}", to_string(all.shape())));
    module.check_numbers("_global_scale", all);
    rows.scale.divisor = all;
  }
  module.find("_shape");
  return rows_of(module, packed, shape, std::move(rows));
}

}  // namespace

Tensor read_packed(PackedModule& module) {
  const Tensor packed = module.need("_packed");
  return packed.dtype() == DType::u8 || packed.dtype() == DType::i8 ? read_packed_fp4(module, packed)
                                                                    : read_integers(module, packed);
}

Tensor read_bitmask(PackedModule& module) {
  const Tensor values = module.need(".compressed"), mask = module.need(".bitmask"), sizes = module.need(".shape");
  const Tensor* offsets = module.find(".row_offsets");
  const std::int64_t rows = module.number(".shape", sizes, 0), columns = module.number(".shape", sizes, 1);
  if (rows <= 0 || columns <= 0) module.complain(fmt::format("has the shape [{}, {}]", rows, columns));
  const Shape shape = {static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(columns)};
  if (mask.dtype() != DType::u8) module.complain(fmt::format("has a bit mask of {}", name(mask.dtype())));
  module.check_shape(".bitmask", mask, {shape[0], quotient(shape[1], 8)});
  if (offsets != nullptr) module.check_shape(".row_offsets", *offsets, {shape[0]});
  if (offsets != nullptr && offsets->dtype() != DType::i64)
    module.complain(fmt::format("has offsets of {}", name(offsets->dtype())));
  if (info(values.dtype()).block_elements != 1) module.refuse(fmt::format("has values of {}", name(values.dtype())));
  const Tensor whole = scattered(values, mask, shape, std::string(module.weight()),
                                 offsets != nullptr ? std::optional(*offsets) : std::nullopt);
  const Tensor* scale = module.find("_scale");
  if (scale == nullptr) return whole;
  PackedRows weight{.codes = element_codes(whole.dtype())};
  weight.scale = numbers_by_shape(module, "_scale", *scale, shape);
  const bool is_float = scale->dtype() == DType::f16 || scale->dtype() == DType::bf16 || scale->dtype() == DType::f32;
  weight.dtype = is_float ? scale->dtype() : DType::bf16;
  if (info(whole.dtype()).block_bytes != 1)
    module.refuse(fmt::format("has values of {} with scales", name(whole.dtype())));
  return rows_of(module, whole, shape, std::move(weight));
}

}  // namespace ballast
