// Where the bytes of tensors lie, and which tensors have the same bytes as an earlier one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <vector>

#include <ballast/checkpoint.hpp>

namespace ballast {

// Where a tensor's bytes lie, and its number in the checkpoint.
struct TensorRange {
  const Storage* storage;
  std::uint64_t first, bytes;
  std::size_t number;

  auto place() const { return std::tie(storage, first, bytes); }
};

// The ranges of these tensors, as far as they have bytes, in the order of where they lie and then of the checkpoint.
// Most files are in that order already.
std::vector<TensorRange> sorted_ranges(const Checkpoint& checkpoint, std::span<const std::size_t> numbers);

// For each tensor of the checkpoint, whether it has the same bytes as an earlier one of these ranges.
std::vector<bool> find_repeated(const Checkpoint& checkpoint, std::span<const TensorRange> sorted);

// The same of these tensors. Those of one file, in its order, are only walked over.
std::vector<bool> find_repeated(const Checkpoint& checkpoint, std::span<const std::size_t> numbers);

// 0, 1, 2 and so on: the numbers of all tensors.
std::vector<std::size_t> all_numbers(const Checkpoint& checkpoint);

}  // namespace ballast
