#include "tensor/packed/group_numbers.hpp"

#include <fmt/format.h>
#include <ballast/error.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <utility>

#include "core/text.hpp"
#include "kernels/cast.hpp"
#include "tensor/packed/weight_error.hpp"

namespace ballast {
namespace {

constexpr int kLeastExponent = -149, kMostExponent = 128;

constexpr auto kPowersOfTwo = [] {
  std::array<float, kMostExponent - kLeastExponent + 1> powers{};
  for (int exponent = kLeastExponent; exponent < kMostExponent; ++exponent)
    powers[static_cast<std::size_t>(exponent - kLeastExponent)] = std::bit_cast<float>(
        exponent < -126 ? std::uint32_t{1} << (exponent + 149) : static_cast<std::uint32_t>(exponent + 127) << 23);
  powers.back() = std::numeric_limits<float>::infinity();
  return powers;
}();

// 2^exponent; from 2^128 on, it is infinite.
float power_of_two(int exponent) {
  return kPowersOfTwo[static_cast<std::size_t>(std::clamp(exponent, kLeastExponent, kMostExponent) - kLeastExponent)];
}

void round_numbers(DType dtype, std::vector<float>& values) {
  std::vector<std::byte> rounded(values.size() * info(dtype).block_bytes);
  kernels::cast(DType::f32, dtype, std::as_bytes(std::span(values)), rounded);
  kernels::cast(dtype, DType::f32, rounded, std::as_writable_bytes(std::span(values)));
}

}  // namespace

GroupNumbers one_number(Tensor value) {
  return {.values = std::move(value), .columns_each = GroupNumbers::kAll, .rows_each = GroupNumbers::kAll};
}

GroupNumbers one_number(float value) {
  return one_number(Tensor::from_values(DType::f32, {1}, std::span<const float>(&value, 1)));
}

std::vector<std::uint32_t> read_groups(const Tensor& group_of, std::uint64_t in_line, std::string_view weight) {
  std::vector<std::int32_t> raw(static_cast<std::size_t>(group_of.numel()));
  group_of.read(0, std::as_writable_bytes(std::span(raw)));
  const auto count = static_cast<std::int64_t>(in_line);
  std::vector<std::uint32_t> groups;
  groups.reserve(raw.size());
  for (const std::int64_t group : raw) {
    if (group < -count || group >= count)
      throw weight_error(weight, fmt::format("has an input of group {}, of {} groups", group, count), group_of);
    groups.push_back(static_cast<std::uint32_t>(group < 0 ? group + count : group));
  }
  return groups;
}

std::vector<float> read_floats(const Tensor& tensor, std::uint64_t first, std::uint64_t count) {
  const std::uint64_t width = info(tensor.dtype()).block_bytes;
  std::vector<std::byte> bytes(static_cast<std::size_t>(count * width));
  tensor.read(first * width, bytes);
  std::vector<float> values(static_cast<std::size_t>(count));
  kernels::cast(tensor.dtype(), DType::f32, bytes, std::as_writable_bytes(std::span(values)));
  return values;
}

LoadedNumbers::LoadedNumbers(const GroupNumbers& numbers, const MatrixPart& part, std::span<const std::uint32_t> groups)
    : numbers_(&numbers), first_line_(numbers.line_of(part.first_row)), in_line_(numbers.in_line), first_(0) {
  const std::uint64_t lines = numbers.line_of(part.first_row + part.rows - 1) - first_line_ + 1;
  if (lines == 1 && !numbers.group_of) {
    first_ = part.first_column / numbers.columns_each;
    in_line_ = (part.first_column + part.columns - 1) / numbers.columns_each - first_ + 1;
  }
  values_ = read_floats(numbers.values, first_line_ * numbers.in_line + first_, lines * in_line_);
  change_values();
  if (!numbers.group_of) return;
  first_ = part.first_column;
  spread(groups.subspan(part.first_column, part.columns));  // the caller has compared them with in_line
}

void LoadedNumbers::change_values() {
  const GroupNumbers& numbers = *numbers_;
  if (numbers.exponent_bias)
    for (float& value : values_) value = power_of_two(static_cast<int>(value) - *numbers.exponent_bias);
  if (numbers.rounded) round_numbers(*numbers.rounded, values_);
  if (numbers.multiplier) {
    const float all = read_floats(*numbers.multiplier, 0, 1).front();
    for (float& value : values_) value *= all;
  }
  if (numbers.divisor) {
    const float all = read_floats(*numbers.divisor, 0, 1).front();
    for (float& value : values_) value /= all;
  }
}

// Gives each column its own number.
void LoadedNumbers::spread(std::span<const std::uint32_t> groups) {
  std::vector<float> spread;
  spread.reserve(values_.size() / in_line_ * groups.size());
  for (std::size_t line = 0; line < values_.size(); line += in_line_)
    for (const std::uint32_t group : groups) spread.push_back(values_[line + group]);
  values_ = std::move(spread);
  in_line_ = groups.size();
}

}  // namespace ballast
