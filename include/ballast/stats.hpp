// Statistics of a tensor's values, streamed.
#pragma once

#include <cstdint>
#include <vector>

#include <ballast/limits.hpp>
#include <ballast/progress.hpp>
#include <ballast/tensor.hpp>

namespace ballast {

struct StatsOptions {
  unsigned bins = 0;  // of the histogram; 0 is none, and saves the second pass
  unsigned threads = 0;
  Progress progress{};
  Limits limits{};  // on views that repeat bytes
};

struct Stats {
  std::uint64_t count = 0, zeros = 0, nans = 0, infinities = 0;
  double min = 0, max = 0, mean = 0, std = 0;  // of the finite values; 0 where there are none
  std::vector<std::uint64_t> histogram;        // equal bins from min to max; as many where there are no finite values

  std::uint64_t finite() const noexcept { return count - nans - infinities; }
};

// Throws Errc::unsupported for dtypes without an order (complex, undecoded blocks).
Stats stats(const Tensor& tensor, const StatsOptions& options = {});

}  // namespace ballast
