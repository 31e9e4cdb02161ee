#include "kernels/stats.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/blocks.hpp"
#include "kernels/cast.hpp"

namespace ballast::kernels {
namespace {

// Sums are kept in so many lanes, which the compiler may put into vectors, and added up in one fixed order: the bits
// do not depend on the machine.
constexpr std::size_t kLanes = 8;
using Lanes = std::array<double, kLanes>;

double sum_of(const Lanes& lanes) {
  return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

// Counts are doubles as well, for the sake of the vectors: they are small.
struct Tally {
  Lanes sum{}, nan{}, finite{}, zero{}, min, max;
};

Tally tally(const double* values, std::size_t count) {
  constexpr double kLargest = std::numeric_limits<double>::max(), kInfinity = std::numeric_limits<double>::infinity();
  Tally t;
  t.min.fill(kInfinity);
  t.max.fill(-kInfinity);
  for (std::size_t i = 0; i < count; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const double x = values[i + lane];
      const bool finite = std::fabs(x) <= kLargest;
      t.sum[lane] += finite ? x : 0.0;
      t.finite[lane] += finite ? 1.0 : 0.0;
      t.nan[lane] += x != x ? 1.0 : 0.0;
      t.zero[lane] += x == 0.0 ? 1.0 : 0.0;
      const double low = finite ? x : kInfinity, high = finite ? x : -kInfinity;
      t.min[lane] = low < t.min[lane] ? low : t.min[lane];
      t.max[lane] = high > t.max[lane] ? high : t.max[lane];
    }
  }
  return t;
}

double squared_distances(const double* values, std::size_t count, double mean) {
  constexpr double kLargest = std::numeric_limits<double>::max();
  Lanes sum{};
  for (std::size_t i = 0; i < count; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const double x = values[i + lane], distance = x - mean;
      sum[lane] += std::fabs(x) <= kLargest ? distance * distance : 0.0;
    }
  }
  return sum_of(sum);
}

// The mean where the sum itself would overflow.
double mean_of_huge(const double* values, std::size_t count, double finite) {
  double mean = 0;
  for (std::size_t i = 0; i < count; ++i) mean += std::isfinite(values[i]) ? values[i] / finite : 0.0;
  return mean;
}

// Of up to a block of values. They lie in the first-level cache, so a second pass for the distances costs little and
// loses nothing to cancellation. The room behind them, up to a whole group of lanes, is filled with NaN.
Moments moments_of(double* values, std::size_t count) {
  const std::size_t padded = (count + kLanes - 1) / kLanes * kLanes;
  std::fill(values + count, values + padded, std::numeric_limits<double>::quiet_NaN());
  const Tally t = tally(values, padded);

  Moments m;
  const double finite = sum_of(t.finite);
  m.count = count;
  m.nan_count = static_cast<std::uint64_t>(sum_of(t.nan)) - (padded - count);
  m.inf_count = count - m.nan_count - static_cast<std::uint64_t>(finite);
  m.zero_count = static_cast<std::uint64_t>(sum_of(t.zero));
  m.min = *std::min_element(t.min.begin(), t.min.end());
  m.max = *std::max_element(t.max.begin(), t.max.end());
  if (finite == 0) return m;
  const double sum = sum_of(t.sum);
  m.mean = std::isfinite(sum) ? sum / finite : mean_of_huge(values, count, finite);
  m.m2 = squared_distances(values, padded, m.mean);
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
  for_each_block(dtype, bytes, [&](double* values, std::size_t count) { moments.merge(moments_of(values, count)); });
}

void histogram(std::span<std::uint64_t> bins, double low, double high, DType dtype,
               std::span<const std::byte> bytes) noexcept {
  if (bins.empty()) return;
  // Halves, because high - low may overflow.
  const double half_width = high / 2 - low / 2, bin_count = static_cast<double>(bins.size());
  const std::size_t last = bins.size() - 1;
  for_each_block(dtype, bytes, [&](const double* values, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      if (!(values[i] >= low && values[i] <= high)) continue;
      const double place = half_width > 0 ? (values[i] / 2 - low / 2) / half_width * bin_count : 0;
      ++bins[std::min(static_cast<std::size_t>(place), last)];
    }
  });
}

}  // namespace ballast::kernels
