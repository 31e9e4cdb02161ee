#include "kernels/channel_sums.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/block_sums.hpp"
#include "kernels/blocks.hpp"

namespace ballast::kernels {
namespace {

template <class T>
ChannelSum sum_of_run(const T* values, std::size_t count) {
  ChannelSum sum;
  const BlockSums block = block_sums(values, count);
  if (std::isfinite(block.sum) && std::isfinite(block.squares)) {
    sum.finite = count;
    sum.shift = static_cast<double>(values[0]);
    sum.sum = block.sum;
    sum.squares = block.squares;
    sum.min = block.min;
    sum.max = block.max;
    return sum;
  }
  for (std::size_t i = 0; i < count; ++i) sum.add(static_cast<double>(values[i]));
  return sum;
}

template <class T>
bool are_finite(const T* values, std::size_t count) {
  unsigned not_finite = 0;
  for (std::size_t i = 0; i < count; ++i) not_finite |= std::fabs(values[i]) <= std::numeric_limits<T>::max() ? 0U : 1U;
  return not_finite == 0;
}

}  // namespace

void ChannelSum::add(double value) noexcept {
  if (!std::isfinite(value)) {
    ++(std::isnan(value) ? nans : infinities);
    return;
  }
  if (finite++ == 0) shift = value;
  const double distance = value - shift;
  sum += distance;
  squares += distance * distance;
  min = std::min(min, value + 0.0);
  max = std::max(max, value + 0.0);
}

void ChannelSum::merge(const ChannelSum& next) noexcept {
  if (finite == 0) shift = next.shift;
  const double distance = next.shift - shift, n = static_cast<double>(next.finite);
  sum += next.sum + n * distance;
  squares += next.squares + 2 * distance * next.sum + n * distance * distance;
  finite += next.finite;
  nans += next.nans;
  infinities += next.infinities;
  min = std::min(min, next.min);
  max = std::max(max, next.max);
}

double ChannelSum::mean() const noexcept {
  return finite == 0 ? 0 : std::clamp(shift + sum / static_cast<double>(finite), min, max);
}

double ChannelSum::variance() const noexcept {
  if (finite == 0) return 0;
  const auto n = static_cast<double>(finite);
  return std::max(squares / n - sum / n * (sum / n), 0.0);
}

ChannelSums::ChannelSums(std::uint64_t channels, std::uint64_t inner, std::uint64_t first)
    : channels_(channels),
      inner_(inner),
      channel_(first / inner % channels),
      left_(inner - first % inner),
      finite_(channels),
      nans_(channels),
      infinities_(channels),
      shift_(channels),
      sum_(channels),
      squares_(channels),
      min_(channels, ChannelSum().min),
      max_(channels, ChannelSum().max) {}

ChannelSum ChannelSums::at(std::size_t i) const noexcept {
  return {finite_[i], nans_[i], infinities_[i], shift_[i], sum_[i], squares_[i], min_[i], max_[i]};
}

void ChannelSums::put(std::size_t i, const ChannelSum& sum) noexcept {
  finite_[i] = sum.finite;
  nans_[i] = sum.nans;
  infinities_[i] = sum.infinities;
  shift_[i] = sum.shift;
  sum_[i] = sum.sum;
  squares_[i] = sum.squares;
  min_[i] = sum.min;
  max_[i] = sum.max;
}

// Values of one channel.
template <class T>
void ChannelSums::add_run(const T* values, std::size_t count) noexcept {
  ChannelSum sum = at(channel_);
  sum.merge(sum_of_run(values, count));
  put(channel_, sum);
}

// One value for each of several channels. The first value of a channel becomes its shift.
template <class T>
void ChannelSums::add_side_by_side(const T* values, std::size_t count) noexcept {
  const std::size_t first = channel_;
  const bool have_shifts = std::all_of(&finite_[first], &finite_[first] + count, [](auto n) { return n != 0; });
  if (!have_shifts || !are_finite(values, count)) {
    for (std::size_t i = 0; i < count; ++i) {
      ChannelSum sum = at(first + i);
      sum.add(static_cast<double>(values[i]));
      put(first + i, sum);
    }
    return;
  }
  std::uint64_t* const finite = &finite_[first];
  const double* const shift = &shift_[first];
  double *const sum = &sum_[first], *const squares = &squares_[first];
  double *const min = &min_[first], *const max = &max_[first];
  for (std::size_t i = 0; i < count; ++i) {
    const double value = static_cast<double>(values[i]) + 0.0, distance = value - shift[i];
    sum[i] += distance;
    squares[i] += distance * distance;
    min[i] = value < min[i] ? value : min[i];
    max[i] = value > max[i] ? value : max[i];
    ++finite[i];
  }
}

template <class T>
void ChannelSums::add_runs(const T* values, std::size_t count) noexcept {
  while (count > 0) {
    const std::uint64_t room = inner_ == 1 ? channels_ - channel_ : left_;
    const auto run = static_cast<std::size_t>(std::min<std::uint64_t>(room, count));
    values += run;
    count -= run;
    if (inner_ == 1) {
      add_side_by_side(values - run, run);
      channel_ += run;
    } else {
      add_run(values - run, run);
      left_ -= run;
      if (left_ > 0) continue;
      left_ = inner_;
      ++channel_;
    }
    if (channel_ == channels_) channel_ = 0;
  }
}

void ChannelSums::add(DType dtype, std::span<const std::byte> bytes) noexcept {
  for_each_narrow_block(dtype, bytes, [this](const auto* values, std::size_t count) { add_runs(values, count); });
}

}  // namespace ballast::kernels
