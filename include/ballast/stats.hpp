// Statistics of the values of tensors, streamed: tensors are read in chunks of about 1 MiB, never whole.
//
// stats() may be called from several threads at once. Its result owns everything in it, and does not depend on the
// number of threads. One pass over the values gives everything but what an option says it takes more for.
//
// Example:
//   const Stats values = stats(open("model.safetensors").at("norm.weight"), {.quantiles = {0.01, 0.5, 0.99}});
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <ballast/checkpoint.hpp>
#include <ballast/limits.hpp>
#include <ballast/progress.hpp>
#include <ballast/team.hpp>
#include <ballast/tensor.hpp>

namespace ballast {

inline constexpr std::size_t kMostQuantiles = 128;
inline constexpr std::uint64_t kMostChannels = std::uint64_t{1} << 19;
inline constexpr double kOutlierDistance = 6;  // in standard deviations

struct StatsOptions {
  unsigned bins = 0;      // bins of the histogram, which takes a second pass over the values; 0: no histogram
  bool outliers = false;  // count them, which takes a second pass over those parts of a tensor that have any
  // From 0 to 1, at most kMostQuantiles. They are exact: types of 8 and 16 bits take no further pass over the values,
  // F32 and ggml's blocks one, wider types three. 512 KiB of memory for each quantile.
  std::vector<double> quantiles{};
  // Statistics for each index of this dimension, which take a further pass; negative ones count from the last. At most
  // kMostChannels channels, with 64 bytes each.
  std::optional<std::int64_t> axis{};
  unsigned threads = 0;
  Progress progress{};
  Limits limits{};       // for views that repeat bytes
  Team* team = nullptr;  // the processes that read the tensors together: see team.hpp
};

// The smallest value that is not less than this share of the values, NaN left out: NumPy's method "inverted_cdf".
// Infinities are values here.
struct Quantile {
  double quantile = 0;
  std::optional<double> value;  // empty if there are no values
};

// Those of the finite values; 0 if there are none.
struct ChannelStats {
  std::uint64_t finite = 0, nans = 0, infinities = 0;
  double min = 0, max = 0, mean = 0, std = 0;
};

struct Stats {
  std::uint64_t count = 0, zeros = 0, nans = 0, infinities = 0;
  double min = 0, max = 0, mean = 0, std = 0;              // of the finite values; 0 if there are none
  double l1 = 0, l2 = 0, max_abs = 0, rms = 0;             // norms of the finite values
  std::optional<std::uint64_t> first_nan, first_infinity;  // the number of the element in row-major order
  std::optional<std::uint64_t> outliers;  // finite values farther than kOutlierDistance from the mean, if asked for
  std::vector<std::uint64_t> histogram;   // equal bins from min to max; all 0 if there are no finite values
  std::vector<Quantile> quantiles;        // in the order of the options
  std::vector<ChannelStats> channels;     // for each index of the axis

  std::uint64_t finite() const noexcept { return count - nans - infinities; }
};

// Values of ggml's blocks are decoded first. Throws Errc::unsupported for dtypes without an order, such as complex
// ones, and for tensors without data.
Stats stats(const Tensor& tensor, const StatsOptions& options = {});

struct TensorStats {
  std::string name;
  std::optional<Stats> stats;  // empty for dtypes without an order, and for tensors without data
  std::string why_not{};       // why it is empty
};

// Statistics of every tensor, in the order of the checkpoint. A tensor that has no dimension `axis` has no channels.
// Without a histogram, quantiles and channels, all tensors are read in one go, whatever their sizes.
std::vector<TensorStats> stats(const Checkpoint& checkpoint, const StatsOptions& options = {});

}  // namespace ballast
