#include <ballast/stats.hpp>

#include <algorithm>
#include <cmath>
#include <memory>

#include "checkpoint/quantization/packed_parts.hpp"
#include "core/deal.hpp"
#include "core/thread_pool.hpp"
#include "inspect/channels.hpp"
#include "inspect/quantiles.hpp"
#include "inspect/value_pass.hpp"
#include "tensor/read_ahead.hpp"
#include "tensor/repeated_bytes.hpp"
#include "tensor/same_sources.hpp"

namespace ballast {
namespace {

constexpr std::uint64_t kGroupBytes = std::uint64_t{4} << 20;

bool has_dimension(const Tensor& tensor, std::int64_t axis) {
  const auto rank = static_cast<std::int64_t>(tensor.rank());
  return axis >= -rank && axis < rank;
}

bool wants_channels(const Tensor& tensor, const StatsOptions& options) {
  return options.axis && has_dimension(tensor, *options.axis);
}

bool wants_second_look(const StatsOptions& options) { return options.bins != 0 || options.outliers; }

unsigned passes_over(const Tensor& numbers, const StatsOptions& options) {
  unsigned passes = wants_second_look(options) ? 2 : 1;
  if (!options.quantiles.empty()) passes = std::max(passes, QuantileSearch::passes(numbers.dtype()));
  return passes + (wants_channels(numbers, options) ? 1 : 0);
}

Stats stats_of(const kernels::Moments& moments) {
  Stats stats;
  stats.count = moments.count;
  stats.zeros = moments.zero_count;
  stats.nans = moments.nan_count;
  stats.infinities = moments.inf_count;
  if (moments.first_nan != kernels::kNoElement) stats.first_nan = moments.first_nan;
  if (moments.first_inf != kernels::kNoElement) stats.first_infinity = moments.first_inf;
  if (moments.finite_count() == 0) return stats;
  stats.min = moments.min;
  stats.max = moments.max;
  stats.mean = moments.mean;
  stats.std = std::sqrt(moments.variance());
  stats.l1 = moments.magnitudes;
  stats.l2 = std::sqrt(moments.squares());
  stats.max_abs = std::max(std::fabs(moments.min), std::fabs(moments.max));
  stats.rms = stats.l2 / std::sqrt(static_cast<double>(moments.finite_count()));
  return stats;
}

// The values that are no outliers.
struct Usual {
  explicit Usual(const Stats& stats)
      : low(stats.mean - kOutlierDistance * stats.std), high(stats.mean + kOutlierDistance * stats.std) {}
  bool holds(const kernels::Moments& part) const { return !(part.min < low) && !(part.max > high); }
  double low, high;
};

// Statistics of several tensors together, which may not have histograms, quantiles or channels; or of one tensor.
class StatsJob {
 public:
  StatsJob(std::span<const Tensor> numbers, const StatsOptions& options, ProgressMeter& meter)
      : numbers_(numbers),
        options_(options),
        meter_(meter),
        pass_(numbers, team_of(options.team)),
        search_(numbers[0].dtype(), options.quantiles) {}

  std::vector<Stats> run() {
    look_once();
    if (wants_second_look(options_) || is_searching()) look_again();
    while (is_searching()) count_only();
    if (!options_.quantiles.empty()) stats_[0].quantiles = search_.quantiles();
    if (wants_channels(numbers_[0], options_)) {
      const std::size_t dimension = channel_dimension(numbers_[0], *options_.axis);
      stats_[0].channels = channels_of(pass_, numbers_[0], dimension, options_.threads, meter_);
    }
    return std::move(stats_);
  }

 private:
  bool is_searching() const { return !options_.quantiles.empty() && !search_.is_done(); }

  unsigned begin_search_pass() {
    const unsigned workers = search_.workers(options_.threads);
    search_.begin_pass(workers);
    return workers;
  }

  void look_once() {
    const bool is_counting = is_searching();
    const unsigned threads = is_counting ? begin_search_pass() : options_.threads;
    of_parts_ = scan_parts(pass_, threads, RowScan::no, meter_, [&](std::size_t, unsigned worker, auto bytes) {
      if (is_counting) search_.count(worker, bytes);
    });
    if (is_counting) search_.end_pass(pass_.team());
    for (const ValueScan& scan : merged(pass_, of_parts_, numbers_.size())) stats_.push_back(stats_of(scan.moments));
  }

  void look_again() {
    const bool is_counting = is_searching();
    const unsigned threads = is_counting ? begin_search_pass() : options_.threads;
    std::vector<Usual> usual(stats_.begin(), stats_.end());
    std::vector<std::uint64_t> outliers(pass_.parts().size());
    const unsigned workers = threads == 0 ? available_threads() : threads;
    std::vector<std::vector<std::uint64_t>> histograms(workers, std::vector<std::uint64_t>(options_.bins));

    const auto has_outliers = [&](std::size_t part) {
      return options_.outliers && !usual[pass_.parts()[part].number].holds(of_parts_[part].moments);
    };
    const auto fills_bins = [&](std::size_t part) {
      return options_.bins != 0 && stats_[pass_.parts()[part].number].finite() != 0;
    };
    const auto look = [&](std::size_t part, unsigned worker, std::span<const std::byte> bytes) {
      const std::size_t number = pass_.parts()[part].number;
      const DType dtype = numbers_[number].dtype();
      const Stats& all = stats_[number];
      if (has_outliers(part))
        outliers[part] += kernels::count_outside(usual[number].low, usual[number].high, dtype, bytes);
      if (fills_bins(part)) kernels::histogram(histograms[worker], all.min, all.max, dtype, bytes);
      if (is_counting) search_.count(worker, bytes);
    };
    pass_.run(threads, meter_, look,
              [&](std::size_t part) { return !has_outliers(part) && !fills_bins(part) && !is_counting; });
    if (is_counting) search_.end_pass(pass_.team());

    if (options_.outliers) pass_.deal().share(std::span(outliers));
    for (Stats& stats : stats_) {
      if (options_.outliers) stats.outliers = 0;
      stats.histogram.resize(options_.bins);
    }
    for (std::size_t i = 0; i < outliers.size() && options_.outliers; ++i)
      *stats_[pass_.parts()[i].number].outliers += outliers[i];
    for (const auto& histogram : histograms)
      std::ranges::transform(stats_[0].histogram, histogram, stats_[0].histogram.begin(), std::plus());
    add_up(pass_.team(), stats_[0].histogram);
  }

  void count_only() {
    const unsigned workers = begin_search_pass();
    pass_.run(workers, meter_, [&](std::size_t, unsigned worker, auto bytes) { search_.count(worker, bytes); });
    search_.end_pass(pass_.team());
  }

  std::span<const Tensor> numbers_;
  const StatsOptions& options_;
  ProgressMeter& meter_;
  ValuePass pass_;
  QuantileSearch search_;
  std::vector<ValueScan> of_parts_;
  std::vector<Stats> stats_;
};

std::uint64_t bytes_to_read(std::span<const Tensor> numbers, const StatsOptions& options) {
  std::uint64_t bytes = 0;
  for (const Tensor& tensor : numbers) bytes += tensor.nbytes() * passes_over(tensor, options);
  return bytes;
}

// Where groups of small tensors begin, and the end of the last one. What is not mapped is announced by the group, so
// that tensors side by side are one request, and taken into memory, so that several passes read it once.
std::vector<std::size_t> groups_of(std::span<const Tensor> numbers) {
  std::vector<std::size_t> begins = {0};
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (i > begins.back() && bytes + numbers[i].nbytes() > kGroupBytes) {
      begins.push_back(i);
      bytes = 0;
    }
    bytes += numbers[i].nbytes();
  }
  if (!numbers.empty()) begins.push_back(numbers.size());
  return begins;
}

std::vector<Stats> stats_of_numbers(std::span<const Tensor> numbers, const StatsOptions& options) {
  ProgressMeter meter(progress_of(team_of(options.team), options.progress), "reading", bytes_to_read(numbers, options));
  const bool goes_together = options.bins == 0 && options.quantiles.empty() && !options.axis;
  if (goes_together && !numbers.empty()) return StatsJob(numbers, options, meter).run();
  const bool is_alone = team_of(options.team).size() == 1;  // several processes read a part of each tensor
  const auto is_taken = [&](const Tensor& tensor) {
    return is_alone && tensor.nbytes() <= kGroupBytes && !tensor.is_mapped();
  };
  const std::vector<std::size_t> groups = groups_of(numbers);
  ReadAhead ahead(groups.size() - 1, [&](std::size_t group, Announcement& reads) {
    for (std::size_t i = groups[group]; i < groups[group + 1]; ++i) {
      if (is_taken(numbers[i])) reads.add(numbers[i], {0, numbers[i].nbytes()});
    }
  });
  std::vector<Stats> all;
  for (std::size_t group = 0; group + 1 < groups.size(); ++group) {
    ahead.begin(group);
    for (std::size_t i = groups[group]; i < groups[group + 1]; ++i) {
      const Tensor one = is_taken(numbers[i]) ? numbers[i].realize(1) : numbers[i];
      all.push_back(std::move(StatsJob(std::span(&one, 1), options, meter).run()[0]));
    }
  }
  return all;
}

std::vector<TensorStats> stats_of_all(const Checkpoint& checkpoint, const StatsOptions& options) {
  check_quantiles(options.quantiles);
  std::vector<TensorStats> results;
  std::vector<Tensor> numbers;
  const PackedParts packed(checkpoint);
  for (const auto& [name, tensor] : checkpoint) {
    packed.refuse(name, tensor, "measured");
    const auto error = why_no_statistics(tensor);
    results.push_back({std::string(name), std::nullopt, error ? error->message() : ""});
    if (error) continue;
    numbers.push_back(numbers_of(tensor));
    if (wants_channels(tensor, options)) channel_dimension(tensor, *options.axis);
    RepeatedBytes(options.limits).add(name, numbers.back());
  }
  auto all = stats_of_numbers(numbers, options);
  for (std::size_t next = 0; TensorStats & result : results) {
    if (result.why_not.empty()) result.stats = std::move(all[next++]);
  }
  return results;
}

}  // namespace

Stats stats(const Tensor& tensor, const StatsOptions& options) {
  Stats result;
  together(team_of(options.team), [&] {
    if (const auto error = why_no_statistics(tensor)) throw *error;
    check_quantiles(options.quantiles);
    check_same_sources(team_of(options.team), tensor);
    const Tensor numbers = numbers_of(tensor);
    if (options.axis) channel_dimension(numbers, *options.axis);
    RepeatedBytes(options.limits).add("", numbers);
    result = std::move(stats_of_numbers({&numbers, 1}, options)[0]);
  });
  return result;
}

std::vector<TensorStats> stats(const Checkpoint& checkpoint, const StatsOptions& options) {
  std::vector<TensorStats> results;
  together(team_of(options.team), [&] {
    check_same_sources(team_of(options.team), checkpoint);
    results = stats_of_all(checkpoint, options);
  });
  return results;
}

}  // namespace ballast
