#include "kept_stats.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace ballast::cli {
namespace {

constexpr std::uint64_t Stats::*kCounts[] = {&Stats::count, &Stats::zeros, &Stats::nans, &Stats::infinities};
constexpr double Stats::*kNumbers[] = {&Stats::min, &Stats::max, &Stats::mean,    &Stats::std,
                                       &Stats::l1,  &Stats::l2,  &Stats::max_abs, &Stats::rms};

}  // namespace

void KeptStats::keep(const TensorStats& computed) {
  if (is_known(computed.stats && !computed.stats->histogram.empty())) return;  // another job was faster
  state_ = computed.stats ? State::whole : State::none;
  if (!computed.stats) return;
  const Stats& stats = *computed.stats;
  for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] = stats.*kCounts[i];
  for (std::size_t i = 0; i < numbers_.size(); ++i) numbers_[i] = stats.*kNumbers[i];
  const auto is_large = [](std::uint64_t count) { return count > std::numeric_limits<std::uint32_t>::max(); };
  has_halves_ = std::ranges::any_of(stats.histogram, is_large);
  histogram_.clear();
  histogram_.reserve(stats.histogram.size() * (has_halves_ ? 2 : 1));
  for (const std::uint64_t count : stats.histogram) {
    histogram_.push_back(static_cast<std::uint32_t>(count));
    if (has_halves_) histogram_.push_back(static_cast<std::uint32_t>(count >> 32));
  }
}

TensorStats KeptStats::of(std::string name, bool with_histogram) const {
  TensorStats whole{std::move(name), std::nullopt};
  if (state_ != State::whole) return whole;
  Stats& stats = whole.stats.emplace();
  for (std::size_t i = 0; i < counts_.size(); ++i) stats.*kCounts[i] = counts_[i];
  for (std::size_t i = 0; i < numbers_.size(); ++i) stats.*kNumbers[i] = numbers_[i];
  for (std::size_t i = 0; with_histogram && i < histogram_.size(); i += has_halves_ ? 2 : 1)
    stats.histogram.push_back(has_halves_ ? histogram_[i] | std::uint64_t{histogram_[i + 1]} << 32 : histogram_[i]);
  return whole;
}

}  // namespace ballast::cli
