#include "inspect/tensor_ranges.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

namespace ballast {

std::vector<TensorRange> sorted_ranges(const Checkpoint& checkpoint, std::span<const std::size_t> numbers) {
  std::vector<TensorRange> ranges;
  ranges.reserve(numbers.size());
  for (const std::size_t number : numbers) {
    const Tensor& tensor = checkpoint.tensors[number].tensor;
    if (const std::uint64_t bytes = tensor.nbytes(); bytes != 0)
      ranges.push_back({tensor.storage().get(), tensor.offset(), bytes, number});
  }
  const auto before = [](const TensorRange& a, const TensorRange& b) {
    return std::tuple(a.storage, a.first, a.bytes, a.number) < std::tuple(b.storage, b.first, b.bytes, b.number);
  };
  if (!std::ranges::is_sorted(ranges, before)) std::ranges::sort(ranges, before);
  return ranges;
}

std::vector<bool> find_repeated(const Checkpoint& checkpoint, std::span<const TensorRange> sorted) {
  std::vector<bool> is_repeated(checkpoint.size());
  for (std::size_t i = 1; i < sorted.size(); ++i)
    is_repeated[sorted[i].number] = sorted[i].storage != nullptr && sorted[i].place() == sorted[i - 1].place();
  return is_repeated;
}

std::vector<bool> find_repeated(const Checkpoint& checkpoint, std::span<const std::size_t> numbers) {
  const auto goes_on = [&](std::size_t a, std::size_t b) {
    const Tensor &before = checkpoint.tensors[a].tensor, &after = checkpoint.tensors[b].tensor;
    return before.storage() == after.storage() && before.offset() < after.offset();
  };
  const auto break_at = std::ranges::adjacent_find(numbers, std::not_fn(goes_on));
  if (break_at == numbers.end()) return std::vector<bool>(checkpoint.size());
  return find_repeated(checkpoint, sorted_ranges(checkpoint, numbers));
}

std::vector<std::size_t> all_numbers(const Checkpoint& checkpoint) {
  std::vector<std::size_t> numbers(checkpoint.size());
  std::iota(numbers.begin(), numbers.end(), std::size_t{0});
  return numbers;
}

}  // namespace ballast
