// Statistics of a tensor's values, streamed: the tensor is read in chunks of about 1 MiB, never whole.
//
// stats() may be called from several threads at once. Its result owns everything in it, and does not depend on the
// number of threads.
//
// Example:
//   const Stats values = stats(open("model.safetensors").at("norm.weight"));
#pragma once

#include <cstdint>
#include <vector>

#include <ballast/limits.hpp>
#include <ballast/progress.hpp>
#include <ballast/tensor.hpp>

namespace ballast {

struct StatsOptions {
  unsigned bins = 0;  // bins of the histogram, which takes a second pass over the values; 0: no histogram
  unsigned threads = 0;
  Progress progress{};
  Limits limits{};  // for views that repeat bytes
};

struct Stats {
  std::uint64_t count = 0, zeros = 0, nans = 0, infinities = 0;
  double min = 0, max = 0, mean = 0, std = 0;  // of the finite values; 0 if there are none
  std::vector<std::uint64_t> histogram;        // equal bins from min to max; all 0 if there are no finite values

  std::uint64_t finite() const noexcept { return count - nans - infinities; }
};

// Values of ggml's blocks are decoded first. Throws Errc::unsupported for dtypes without an order, such as complex
// ones, and for tensors without data.
Stats stats(const Tensor& tensor, const StatsOptions& options = {});

}  // namespace ballast
