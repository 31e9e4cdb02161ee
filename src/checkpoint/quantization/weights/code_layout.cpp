#include "checkpoint/quantization/weights/code_layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "core/checked.hpp"
#include "core/text.hpp"
#include "tensor/concat_storage.hpp"

namespace ballast {
namespace {

// The size of a block: the configured one if so many blocks of it cover `count`, else a likely one; none if no size
// fits.
std::optional<std::uint64_t> block_of(std::uint64_t count, std::uint64_t blocks, std::uint64_t configured) {
  if (configured != 0 && count / configured + (count % configured != 0) == blocks) return configured;
  return likely_block(count, blocks);
}

// Integers are no scales, unless they are exponents.
void check_scales(const PackedModule& module, const GroupNumbers& scales) {
  const auto is_float = [](const Tensor& numbers) { return info(numbers.dtype()).kind == DTypeKind::floating; };
  const auto check = [&](const Tensor& numbers, bool is_right) {
    if (!is_right) module.complain(fmt::format("has scales of {}", name(numbers.dtype())));
  };
  check(scales.values, scales.exponent_bias ? scales.values.dtype() == DType::u8 : is_float(scales.values));
  if (scales.multiplier) check(*scales.multiplier, is_float(*scales.multiplier));
  if (scales.divisor) check(*scales.divisor, is_float(*scales.divisor));
}

// Numbers for each index of the leading dimensions: everything below such an index shares its number.
std::optional<GroupNumbers> leading_numbers(const Tensor& numbers, const Shape& weight) {
  std::uint64_t rows_each = 1;  // of rows, which the last dimension makes
  std::size_t rank = numbers.rank();
  while (rank > 0 && numbers.shape()[rank - 1] == 1) --rank;
  if (rank >= weight.rank()) return std::nullopt;
  for (std::size_t i = 0; i < rank; ++i)
    if (numbers.shape()[i] != weight[i]) return std::nullopt;
  for (std::size_t i = rank; i + 1 < weight.rank(); ++i) rows_each *= weight[i];  // fits: the size of the weight does
  return GroupNumbers{
      .values = numbers, .columns_each = GroupNumbers::kAll, .rows_each = std::max<std::uint64_t>(rows_each, 1)};
}

}  // namespace

std::uint64_t words_for(std::uint64_t codes, unsigned bits) noexcept {
  return codes / 32 * bits + (codes % 32 * bits + 31) / 32;
}

Tensor byte_view(const PackedModule& module, const Tensor& part) {
  if (!part.is_contiguous()) module.refuse("has a part that is not contiguous");
  return Tensor(DType::u8, {part.nbytes()}, part.storage(), part.offset());
}

Tensor byte_view(const Tensor& bytes, std::uint64_t first, std::uint64_t size) {
  return Tensor(DType::u8, {size}, bytes.storage(), bytes.offset() + first);
}

std::optional<std::uint64_t> likely_block(std::uint64_t count, std::uint64_t blocks) noexcept {
  if (blocks == 0 || count % blocks != 0) return std::nullopt;
  const std::uint64_t size = count / blocks;
  return blocks == 1 || std::has_single_bit(size) ? std::optional(size) : std::nullopt;
}

GroupNumbers numbers_by_shape(const PackedModule& module, std::string_view ending, const Tensor& numbers,
                              const Shape& weight, std::optional<BlockSize> block) {
  module.check_numbers(ending, numbers);
  if (numbers.numel() == 1) return one_number(numbers);
  const Shape& shape = numbers.shape();
  if (auto leading = leading_numbers(numbers, weight)) {
    leading->columns_each = weight[weight.rank() - 1];  // so that they are flat, if they can be
    return *leading;
  }
  const std::size_t rank = weight.rank();
  const bool is_alike = rank >= 2 && shape.rank() == rank && std::equal(shape.begin(), shape.end() - 2, weight.begin());
  const std::uint64_t rows = is_alike ? weight[rank - 2] : 0, columns = is_alike ? weight[rank - 1] : 0;
  const std::uint64_t rows_each = is_alike ? block_of(rows, shape[rank - 2], block ? block->rows : 0).value_or(0) : 0;
  const std::uint64_t columns_each =
      is_alike ? block_of(columns, shape[rank - 1], block ? block->columns : 0).value_or(0) : 0;
  // One scale for each row, or for single columns, in a line: it is a list of scales that lies the wrong way.
  const bool is_line = is_alike && rows > 1 && shape[rank - 2] == 1;
  const bool is_said = block && rows_each == block->rows && columns_each == block->columns;
  const bool lies_across = !is_said && ((is_line && shape[rank - 1] == rows) || (columns_each == 1 && columns > 1));
  if (rows_each == 0 || columns_each == 0 || lies_across)
    module.complain(fmt::format("of shape {} has {} of shape {}, which does not divide it", to_string(weight),
                                quote(ending), to_string(shape)),
                    is_alike && module.quantization().config.is_null()
                        ? "a config.json beside the file may say how large the blocks are, if the last ones are smaller"
                        : "");
  GroupNumbers groups{
      .values = numbers, .in_line = shape[rank - 1], .columns_each = columns_each, .rows_each = rows_each};
  if (rank > 2 && rows % rows_each != 0) {
    groups.period = rows;
    groups.lines_in_period = shape[rank - 2];
  }
  return groups;
}

GroupNumbers numbers_in_groups(const PackedModule& module, std::string_view ending, const Tensor& numbers,
                               const Shape& weight, std::uint64_t group) {
  const std::uint64_t columns = weight.empty() ? 0 : weight[weight.rank() - 1];
  const std::uint64_t groups = columns / group + (columns % group != 0);
  if (numbers.shape().empty() || numbers.shape()[numbers.rank() - 1] != groups)
    module.complain(fmt::format("of shape {} has {} of shape {}, and not one for each group of {}", to_string(weight),
                                quote(ending), to_string(numbers.shape()), group));
  return numbers_by_shape(module, ending, numbers, weight, BlockSize{1, group});
}

Tensor rows_of(PackedModule& module, const Tensor& packed, const Shape& shape, PackedRows rows) {
  if (shape.empty()) module.complain("has no dimension");
  check_scales(module, rows.scale);
  rows.columns = shape[shape.rank() - 1];
  rows.packed = byte_view(module, packed);
  rows.scheme = std::string(module.scheme());
  rows.weight = std::string(module.weight());
  if (rows.row_bytes == 0) rows.row_bytes = rows.codes.bytes_of(rows.columns);
  const auto numel = shape.numel();
  const std::uint64_t count = rows.columns == 0 || !numel ? 0 : *numel / rows.columns;
  if (!numel || checked_mul(count, rows.row_bytes) != rows.packed.nbytes())
    module.complain(fmt::format("of shape {} is kept in {} bytes", to_string(shape), rows.packed.nbytes()));
  return unpacked_rows(std::move(rows)).reshape(shape);
}

Tensor stacked_blocks(PackedModule& module, const Tensor& packed, std::uint64_t row_count, std::uint64_t columns,
                      const std::vector<PackedCodes>& blocks, const PackedRows& rows) {
  if (packed.rank() != 2 || packed.shape()[1] != columns || packed.shape()[0] == 0)
    module.complain(fmt::format("is kept in codes of shape {}", to_string(packed.shape())));
  const std::uint64_t each = packed.shape()[0];
  const std::uint64_t count = blocks.size();
  if (row_count == 0 || each != row_count / count + (row_count % count != 0))
    module.complain(fmt::format("has {} rows in codes of shape {}", row_count, to_string(packed.shape())));
  const auto lines_of = [](GroupNumbers& numbers, std::uint64_t first, std::uint64_t count) {
    if (numbers.rows_each != 1) return;  // one line for all rows
    const auto from = static_cast<std::int64_t>(first), to = static_cast<std::int64_t>(first + count);
    numbers.values = numbers.values.slice({SliceIndex::range(from, to)});
  };
  std::vector<Tensor> parts;
  for (std::uint64_t i = 0, first = 0; i < blocks.size() && first < row_count; ++i, first += each) {
    const std::uint64_t count = std::min(each, row_count - first);
    PackedRows some = rows;
    some.codes = blocks[i];
    lines_of(some.scale, first, count);
    if (some.zero) lines_of(*some.zero, first, count);
    if (some.bias) lines_of(*some.bias, first, count);
    const Tensor here = packed.slice({SliceIndex::range(0, static_cast<std::int64_t>(count))});
    parts.push_back(rows_of(module, here, {count, columns}, std::move(some)));
  }
  return parts.size() == 1 ? parts.front() : concatenated(std::move(parts), 0);
}

Shape widened(const PackedModule& module, const Shape& shape, std::uint64_t times) {
  if (shape.empty()) module.complain("has no dimension");
  std::vector<std::uint64_t> sizes(shape.begin(), shape.end());
  const auto columns = checked_mul(shape[shape.rank() - 1], times);
  if (!columns) module.complain(fmt::format("of shape {} does not fit 64 bits", to_string(shape)));
  sizes.back() = *columns;
  return Shape(sizes);
}

Tensor flat_groups(PackedModule& module, const Tensor& packed, std::uint64_t count, std::uint64_t group,
                   PackedRows rows) {
  check_scales(module, rows.scale);
  const Tensor bytes = byte_view(module, packed);
  rows.scheme = std::string(module.scheme());
  rows.weight = std::string(module.weight());
  const Tensor numbers = rows.scale.values.reshape({rows.scale.values.numel()});
  const std::uint64_t whole = count / group, rest = count % group;
  if (group * rows.codes.bits % 8 != 0) module.refuse(fmt::format("has groups of {}, which end inside a byte", group));
  const std::uint64_t needed = rows.codes.bytes_of(count);
  if (bytes.nbytes() < needed || bytes.nbytes() - needed >= info(packed.dtype()).block_bytes)
    module.complain(fmt::format("of {} elements is kept in {} bytes", count, bytes.nbytes()));
  if (numbers.numel() != whole + (rest != 0))
    module.complain(fmt::format("has {} scales for {} groups", numbers.numel(), whole + (rest != 0)));

  const auto make = [&](std::uint64_t first, std::uint64_t groups, std::uint64_t columns) {
    PackedRows some = rows;
    some.columns = columns;
    some.row_bytes = rows.codes.bytes_of(columns);
    some.packed = byte_view(bytes, first * rows.codes.bytes_of(group), groups * some.row_bytes);
    const auto from = static_cast<std::int64_t>(first), to = static_cast<std::int64_t>(first + groups);
    some.scale.values = numbers.slice({SliceIndex::range(from, to)});
    some.scale.columns_each = columns;
    return unpacked_rows(std::move(some)).reshape({groups * columns});
  };
  std::vector<Tensor> parts;
  if (whole != 0 || rest == 0) parts.push_back(make(0, whole, group));
  if (rest != 0) parts.push_back(make(whole, 1, rest));
  return parts.size() == 1 ? parts.front() : concatenated(std::move(parts), 0);
}

}  // namespace ballast
