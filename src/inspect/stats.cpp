#include <ballast/error.hpp>
#include <ballast/stats.hpp>

#include <cmath>
#include <mutex>
#include <string>

#include "core/progress_meter.hpp"
#include "core/thread_pool.hpp"
#include "inspect/chunks.hpp"
#include "kernels/stats.hpp"
#include "tensor/repeated_bytes.hpp"

namespace ballast {
namespace {

// One pass over all parts. `look` gets the number of the part, so that results can be combined in order.
void pass(const Tensor& tensor, const std::vector<TensorPart>& parts, const StatsOptions& options, ProgressMeter& meter,
          const std::function<void(std::size_t, std::span<const std::byte>)>& look) {
  ThreadPool(parts.size() < 2 ? 1 : options.threads).run(parts.size(), [&](std::size_t i, unsigned) {
    for_each_chunk(
        tensor, parts[i].first, parts[i].size, [&](std::span<const std::byte> bytes) { look(i, bytes); }, &meter);
  });
}

Stats stats_of_numbers(const Tensor& tensor, const StatsOptions& options) {
  if (!kernels::has_stats(tensor.dtype())) {
    throw Error(Errc::unsupported,
                "values of " + std::string(name(tensor.dtype())) + " have no order to take statistics of");
  }
  if (!tensor.has_data()) throw Error(Errc::unsupported, "a meta tensor has no values");
  RepeatedBytes(options.limits).add("", tensor);
  const Tensor* const one[] = {&tensor};
  const auto parts = split_tensors(one);
  ProgressMeter meter(options.progress, "reading", tensor.nbytes() * (options.bins ? 2 : 1));

  std::vector<kernels::Moments> partial(parts.size());
  pass(tensor, parts, options, meter,
       [&](std::size_t i, auto bytes) { kernels::accumulate(partial[i], tensor.dtype(), bytes); });
  kernels::Moments all;
  for (const kernels::Moments& moments : partial) all.merge(moments);

  Stats stats;
  stats.count = tensor.numel();
  stats.zeros = all.zero_count;
  stats.nans = all.nan_count;
  stats.infinities = all.inf_count;
  stats.histogram.resize(options.bins);
  if (all.finite_count() == 0) {
    if (options.bins != 0) meter.add(tensor.nbytes());  // no second pass is needed
    return stats;
  }
  stats.min = all.min;
  stats.max = all.max;
  stats.mean = all.mean;
  stats.std = std::sqrt(all.variance());
  if (options.bins == 0) return stats;

  std::vector<std::vector<std::uint64_t>> histograms(parts.size(), std::vector<std::uint64_t>(options.bins));
  pass(tensor, parts, options, meter,
       [&](std::size_t i, auto bytes) { kernels::histogram(histograms[i], all.min, all.max, tensor.dtype(), bytes); });
  for (const auto& histogram : histograms) {
    for (unsigned bin = 0; bin < options.bins; ++bin) stats.histogram[bin] += histogram[bin];
  }
  return stats;
}

}  // namespace

Stats stats(const Tensor& tensor, const StatsOptions& options) {
  const bool is_packed = info(tensor.dtype()).kind == DTypeKind::ggml;
  return stats_of_numbers(is_packed ? tensor.to(DType::f32) : tensor, options);
}

}  // namespace ballast
