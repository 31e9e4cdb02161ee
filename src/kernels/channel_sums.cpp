#include "kernels/channel_sums.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/blocks.hpp"

namespace ballast::kernels {

void ChannelSum::add(double value) noexcept {
  if (!std::isfinite(value)) {
    ++(std::isnan(value) ? nans : infinities);
    return;
  }
  if (finite++ == 0) first = value;
  const double distance = value - first;
  sum += distance;
  squares += distance * distance;
  min = std::min(min, value + 0.0);
  max = std::max(max, value + 0.0);
}

void ChannelSum::merge(const ChannelSum& next) noexcept {
  if (finite == 0) first = next.first;
  const double distance = next.first - first, n = static_cast<double>(next.finite);
  sum += next.sum + n * distance;
  squares += next.squares + 2 * distance * next.sum + n * distance * distance;
  finite += next.finite;
  nans += next.nans;
  infinities += next.infinities;
  min = std::min(min, next.min);
  max = std::max(max, next.max);
}

double ChannelSum::mean() const noexcept {
  return finite == 0 ? 0 : std::clamp(first + sum / static_cast<double>(finite), min, max);
}

double ChannelSum::variance() const noexcept {
  if (finite == 0) return 0;
  const auto n = static_cast<double>(finite);
  return std::max(squares / n - sum / n * (sum / n), 0.0);
}

void ChannelSums::add(DType dtype, std::span<const std::byte> bytes) noexcept {
  for_each_narrow_block(dtype, bytes, [this](const auto* values, std::size_t count) {
    while (count > 0) {
      const auto run = static_cast<std::size_t>(std::min<std::uint64_t>(left_, count));
      ChannelSum sum = sums_[channel_];
      for (std::size_t i = 0; i < run; ++i) sum.add(static_cast<double>(values[i]));
      sums_[channel_] = sum;
      values += run;
      count -= run;
      left_ -= run;
      if (left_ > 0) continue;
      left_ = inner_;
      if (++channel_ == sums_.size()) channel_ = 0;
    }
  });
}

}  // namespace ballast::kernels
