#include "kernels/stats.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/blocks.hpp"
#include "kernels/cast.hpp"
#include "kernels/lanes.hpp"

namespace ballast::kernels {
namespace {

// Takes one value after the other, for a block with a value that is not finite, or whose sum is not finite.
Moments moments_one_by_one(const double* values, std::size_t count) {
  Moments m;
  m.count = count;
  for (std::size_t i = 0; i < count; ++i) {
    const double x = values[i];
    if (std::isnan(x)) {
      ++m.nan_count;
    } else if (std::isinf(x)) {
      ++m.inf_count;
    } else {
      m.zero_count += x == 0 ? 1 : 0;
      m.min = std::min(m.min, x);
      m.max = std::max(m.max, x);
    }
  }
  const auto finite = static_cast<double>(m.finite_count());
  for (std::size_t i = 0; i < count; ++i) m.mean += std::isfinite(values[i]) ? values[i] / finite : 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double distance = values[i] - m.mean;
    m.m2 += std::isfinite(values[i]) ? distance * distance : 0;
  }
  return m;
}

double squared_distances(const double* values, std::size_t count, double mean) {
  Pair sum[kPairs] = {};
  for (std::size_t i = 0; i < count; i += kLanes) {
    for (std::size_t p = 0; p < kPairs; ++p) {
      const Pair distance = load_pair(values + i + 2 * p) - mean;
      sum[p] += distance * distance;
    }
  }
  return sum_of(sum);
}

// `count` is a whole number of lanes. The block lies in the first-level cache, so a second pass for the distances costs
// little, and loses nothing to cancellation.
Moments moments_of_lanes(const double* values, std::size_t count) {
  Pair sum[kPairs] = {}, min[kPairs], max[kPairs];
  PairMask zeros[kPairs] = {};
  for (std::size_t p = 0; p < kPairs; ++p) min[p] = max[p] = load_pair(values);
  for (std::size_t i = 0; i < count; i += kLanes) {
    for (std::size_t p = 0; p < kPairs; ++p) {
      const Pair x = load_pair(values + i + 2 * p);
      sum[p] += x;
      zeros[p] += x == 0.0;
      min[p] = x < min[p] ? x : min[p];
      max[p] = x > max[p] ? x : max[p];
    }
  }
  // One value that is not finite is enough to make the sum not finite.
  const double total = sum_of(sum);
  if (!std::isfinite(total)) return moments_one_by_one(values, count);

  Moments m;
  m.count = count;
  m.zero_count = count_of(zeros);
  for (std::size_t i = 0; i < kLanes; ++i) {
    m.min = std::min(m.min, min[i / 2][i % 2]);
    m.max = std::max(m.max, max[i / 2][i % 2]);
  }
  m.mean = total / static_cast<double>(count);
  m.m2 = squared_distances(values, count, m.mean);
  return m;
}

Moments moments_of(const double* values, std::size_t count) {
  const std::size_t whole = count / kLanes * kLanes;
  Moments m;
  if (whole > 0) m = moments_of_lanes(values, whole);
  if (whole < count) m.merge(moments_one_by_one(values + whole, count - whole));
  return m;
}

}  // namespace

// T. Chan, G. Golub and R. LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances", 1979.
void Moments::merge(const Moments& other) noexcept {
  const auto here = static_cast<double>(finite_count()), there = static_cast<double>(other.finite_count());
  const double all = here + there;
  if (there > 0) {
    const double distance = other.mean - mean;
    mean = std::isfinite(distance) ? mean + distance * (there / all) : mean * (here / all) + other.mean * (there / all);
    m2 += other.m2;
    if (here > 0) m2 += distance * distance * (here * (there / all));
  }
  count += other.count;
  nan_count += other.nan_count;
  inf_count += other.inf_count;
  zero_count += other.zero_count;
  min = std::min(min, other.min);
  max = std::max(max, other.max);
}

bool has_stats(DType dtype) noexcept { return can_cast(dtype, DType::f64); }

void accumulate(Moments& moments, DType dtype, std::span<const std::byte> bytes) noexcept {
  for_each_block(dtype, bytes,
                 [&](const double* values, std::size_t count) { moments.merge(moments_of(values, count)); });
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
