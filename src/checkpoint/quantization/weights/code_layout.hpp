// How the codes and the numbers of a quantized weight lie, in rows, blocks and groups: each is checked against the
// shape of the weight.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <ballast/tensor.hpp>

#include "checkpoint/quantization/weights/module.hpp"
#include "tensor/packed/group_numbers.hpp"
#include "tensor/packed/packed_rows.hpp"

namespace ballast {

// How many words of 32 bits a stream of codes takes.
std::uint64_t words_for(std::uint64_t codes, unsigned bits) noexcept;

// The bytes of a part, [nbytes]; of a part of them, from byte `first` on.
Tensor byte_view(const PackedModule& module, const Tensor& part);
Tensor byte_view(const Tensor& bytes, std::uint64_t first, std::uint64_t size);

// Scales of a weight, by their shape: one for all, one for each of the leading dimensions, or a matrix of them, of
// which each is for a block. `block` is what a configuration says of blocks that do not divide the weight.
struct BlockSize {
  std::uint64_t rows, columns;
};
GroupNumbers numbers_by_shape(const PackedModule& module, std::string_view ending, const Tensor& numbers,
                              const Shape& weight, std::optional<BlockSize> block = {});

// The size of so many blocks in `count` elements that nobody says: all of them, or a power of two that divides them. No
// other size is likely, and a larger block whose last one is cut would then fit as well.
std::optional<std::uint64_t> likely_block(std::uint64_t count, std::uint64_t blocks) noexcept;

constexpr std::uint64_t kMxGroup = 32, kNvGroup = 16;  // of MXFP4 and NVFP4

// The same where the format says how many values of a row share a number.
GroupNumbers numbers_in_groups(const PackedModule& module, std::string_view ending, const Tensor& numbers,
                               const Shape& weight, std::uint64_t group);

// A weight whose elements lie in rows of codes, by the last dimension of `shape`. A row takes rows.row_bytes, or if
// that is 0 what its codes take.
Tensor rows_of(PackedModule& module, const Tensor& packed, const Shape& shape, PackedRows rows);

// A matrix whose rows lie in several blocks in the same bytes: block i in the codes blocks[i]. The numbers of `rows`
// are for the whole matrix; each is for all rows, or has a line for each row. The last block may have rows too many,
// but no block may be empty.
Tensor stacked_blocks(PackedModule& module, const Tensor& packed, std::uint64_t row_count, std::uint64_t columns,
                      const std::vector<PackedCodes>& blocks, const PackedRows& rows);

// The last dimension, `times` times as long.
Shape widened(const PackedModule& module, const Shape& shape, std::uint64_t times);

// `count` elements in groups of `group` that do not care for rows: the last group may have fewer. The scale has one
// number for each group.
Tensor flat_groups(PackedModule& module, const Tensor& packed, std::uint64_t count, std::uint64_t group,
                   PackedRows rows);

}  // namespace ballast
