#include "kernels/stats.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/bf16_sums.hpp"
#include "kernels/block_sums.hpp"
#include "kernels/blocks.hpp"
#include "kernels/cast.hpp"

namespace ballast::kernels {
namespace {

// Takes one value after the other, for a block with a value that is not finite, or whose sums are not finite.
template <class T>
Moments moments_one_by_one(const T* values, std::size_t count) {
  Moments m;
  m.count = count;
  for (std::size_t i = 0; i < count; ++i) {
    const auto x = static_cast<double>(values[i]);
    if (std::isnan(x)) {
      if (m.nan_count++ == 0) m.first_nan = i;
    } else if (std::isinf(x)) {
      if (m.inf_count++ == 0) m.first_inf = i;
    } else {
      m.zero_count += x == 0 ? 1 : 0;
      m.min = std::min(m.min, x + 0.0);
      m.max = std::max(m.max, x + 0.0);
    }
  }
  const auto finite = static_cast<double>(m.finite_count());
  for (std::size_t i = 0; i < count; ++i) {
    const auto x = static_cast<double>(values[i]);
    if (!std::isfinite(x)) continue;
    m.mean += x / finite;
    m.magnitudes += std::fabs(x);
  }
  for (std::size_t i = 0; i < count; ++i) {
    const double distance = static_cast<double>(values[i]) - m.mean;
    m.m2 += std::isfinite(values[i]) ? distance * distance : 0;
  }
  return m;
}

// `shift` is what the values of the sums are distances from.
Moments moments_of(const BlockSums& sums, std::size_t count, double shift) {
  const auto n = static_cast<double>(count);
  Moments m;
  m.count = count;
  m.zero_count = sums.zeros;
  m.min = sums.min;
  m.max = sums.max;
  m.mean = shift + sums.sum / n;
  m.m2 = std::max(sums.squares - sums.sum * (sums.sum / n), 0.0);
  m.magnitudes = sums.magnitudes;
  return m;
}

template <class T>
Moments moments_of(const T* values, std::size_t count) {
  const BlockSums sums = block_sums(values, count);
  // One value that is not finite is enough to make the sums not finite.
  if (!std::isfinite(sums.sum) || !std::isfinite(sums.squares) || !std::isfinite(sums.magnitudes))
    return moments_one_by_one(values, count);

  return moments_of(sums, count, static_cast<double>(values[0]));
}

// Adds all whole blocks of BF16, and returns what is left.
std::span<const std::byte> accumulate_bf16(Moments& moments, std::span<const std::byte> bytes, ConstantRows* rows) {
  constexpr std::size_t kBytes = kBf16Block * 2;
  for (; bytes.size() >= kBytes; bytes = bytes.subspan(kBytes)) {
    if (const auto sums = bf16_sums(bytes.data())) {
      moments.merge(moments_of(*sums, kBf16Block, 0));
    } else {
      for_each_narrow_block(DType::bf16, bytes.first(kBytes),
                            [&](const auto* values, std::size_t count) { moments.merge(moments_of(values, count)); });
    }
    if (rows != nullptr) rows->add_bf16(bytes.data(), kBf16Block);
  }
  return bytes;
}

}  // namespace

// T. Chan, G. Golub and R. LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances", 1979.
void Moments::merge(const Moments& next) noexcept {
  const auto here = static_cast<double>(finite_count()), there = static_cast<double>(next.finite_count());
  const double all = here + there;
  if (there > 0) {
    const double distance = next.mean - mean;
    mean = std::isfinite(distance) ? mean + distance * (there / all) : mean * (here / all) + next.mean * (there / all);
    m2 += next.m2;
    if (here > 0) m2 += distance * distance * (here * (there / all));
  }
  if (first_nan == kNoElement && next.first_nan != kNoElement) first_nan = count + next.first_nan;
  if (first_inf == kNoElement && next.first_inf != kNoElement) first_inf = count + next.first_inf;
  count += next.count;
  nan_count += next.nan_count;
  inf_count += next.inf_count;
  zero_count += next.zero_count;
  magnitudes += next.magnitudes;
  min = std::min(min, next.min);
  max = std::max(max, next.max);
}

bool has_stats(DType dtype) noexcept { return can_cast(dtype, DType::f64); }

void accumulate(Moments& moments, DType dtype, std::span<const std::byte> bytes, ConstantRows* rows) noexcept {
  if (dtype == DType::bf16) bytes = accumulate_bf16(moments, bytes, rows);
  for_each_narrow_block(dtype, bytes, [&](const auto* values, std::size_t count) {
    moments.merge(moments_of(values, count));
    if (rows != nullptr) rows->add(values, count);
  });
}

std::uint64_t count_outside(double low, double high, DType dtype, std::span<const std::byte> bytes) noexcept {
  std::uint64_t outside = 0;
  for_each_block(dtype, bytes, [&](const double* values, std::size_t count) {
    std::uint64_t in_block = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const bool is_outside = (values[i] < low) | (values[i] > high);
      in_block += static_cast<unsigned>(is_outside) & static_cast<unsigned>(std::fabs(values[i]) < HUGE_VAL);
    }
    outside += in_block;
  });
  return outside;
}

void histogram(std::span<std::uint64_t> bins, double low, double high, DType dtype,
               std::span<const std::byte> bytes) noexcept {
  if (bins.empty()) return;
  // The code uses halves, because high - low may overflow. If the range is too narrow for a scale, everything goes into
  // the first bin.
  const double scale = static_cast<double>(bins.size()) / (high / 2 - low / 2), offset = low / 2;
  const double usable_scale = std::isfinite(scale) ? scale : 0;
  const auto last = static_cast<std::int64_t>(bins.size() - 1);
  std::uint64_t* const counts = bins.data();
  for_each_block(dtype, bytes, [=](const double* values, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      if (!(values[i] >= low && values[i] <= high)) continue;
      const auto bin = static_cast<std::int64_t>((values[i] / 2 - offset) * usable_scale);
      ++counts[std::min(bin, last)];
    }
  });
}

}  // namespace ballast::kernels
