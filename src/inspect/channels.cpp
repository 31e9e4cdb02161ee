#include "inspect/channels.hpp"

#include <algorithm>
#include <cmath>
#include <memory>

#include <fmt/format.h>

#include "core/thread_pool.hpp"
#include "kernels/channel_sums.hpp"

namespace ballast {
namespace {

constexpr std::uint64_t kMostSumBytes = std::uint64_t{96} << 20;

// Threads, without the result, each of which has sums of its own.
unsigned affordable_threads(unsigned threads, std::uint64_t channels) {
  const std::uint64_t sums = std::max<std::uint64_t>(kMostSumBytes / (channels * sizeof(kernels::ChannelSum) + 1), 2);
  const std::uint64_t wanted = threads == 0 ? available_threads() : threads;
  return static_cast<unsigned>(std::min(wanted, sums - 1));
}

using PartSums = std::vector<std::optional<kernels::ChannelSums>>;

// Adds up, in order, the sums of a round of parts, which begins at part `first`. This member has the sums of its parts.
void merge_round(const ValuePass& pass, std::size_t first, const PartSums& of_parts,
                 std::vector<kernels::ChannelSum>& all) {
  Message message;
  for (const auto& part : of_parts) {
    for (std::size_t i = 0; part && pass.team().size() != 1 && i < all.size(); ++i) {
      const kernels::ChannelSum sum = part->at(i);
      message.bytes(bytes_of(std::span(&sum, 1)));
    }
  }
  const auto messages = pass.team().exchange(message);
  std::vector<Cursor> from(messages.begin(), messages.end());
  for (std::size_t i = 0; i < of_parts.size(); ++i) {
    for (std::size_t channel = 0; channel < all.size(); ++channel) {
      kernels::ChannelSum sum;
      if (pass.team().size() == 1)
        sum = of_parts[i]->at(channel);
      else
        read_values(from[pass.deal().owner(first + i)], std::span(&sum, 1));
      all[channel].merge(sum);
    }
  }
}

}  // namespace

std::size_t channel_dimension(const Tensor& tensor, std::int64_t axis) {
  const auto rank = static_cast<std::int64_t>(tensor.rank());
  if (axis < -rank || axis >= rank)
    throw Error(Errc::invalid_argument,
                fmt::format("a tensor of shape {} has no dimension {}", to_string(tensor.shape()), axis));
  const auto dimension = static_cast<std::size_t>(axis < 0 ? axis + rank : axis);
  if (tensor.shape()[dimension] > kMostChannels)
    throw Error(Errc::limit, fmt::format("dimension {} of shape {} has more than the {} channels that are kept apart",
                                         axis, to_string(tensor.shape()), kMostChannels))
        .hint("take another dimension, or a slice of the tensor");
  return dimension;
}

// Parts are looked at in rounds of one for each thread of all members, and added up in order: the result does not
// depend on the number of threads.
std::vector<ChannelStats> channels_of(const ValuePass& pass, const Tensor& tensor, std::size_t dimension,
                                      unsigned threads, ProgressMeter& meter) {
  const std::uint64_t channels = tensor.shape()[dimension];
  std::uint64_t inner = 1;
  for (std::size_t i = dimension + 1; i < tensor.rank(); ++i) inner *= tensor.shape()[i];

  std::vector<kernels::ChannelSum> all(channels);
  const std::size_t parts = pass.parts().size();
  const unsigned affordable = affordable_threads(threads, channels);
  const std::size_t round = least_of(pass.team(), affordable) * pass.team().size();
  ThreadPool pool(parts < 2 ? 1 : affordable);
  for (std::size_t first = 0; first < parts; first += round) {
    PartSums of_parts(std::min(round, parts - first));
    pool.run(of_parts.size(), [&](std::size_t i, unsigned) {
      if (!pass.deal().is_mine(first + i)) return;
      const TensorPart& part = pass.parts()[first + i];
      of_parts[i].emplace(channels, inner, pass.first_element(first + i));
      for_each_chunk(
          tensor, part.first, part.size,
          [&](std::span<const std::byte> bytes) { of_parts[i]->add(tensor.dtype(), bytes); }, &meter);
    });
    merge_round(pass, first, of_parts, all);
  }
  std::vector<ChannelStats> stats;
  stats.reserve(channels);
  for (const kernels::ChannelSum& sum : all) {
    stats.push_back({.finite = sum.finite, .nans = sum.nans, .infinities = sum.infinities});
    if (sum.finite == 0) continue;
    stats.back().min = sum.min;
    stats.back().max = sum.max;
    stats.back().mean = sum.mean();
    stats.back().std = std::sqrt(sum.variance());
  }
  return stats;
}

}  // namespace ballast
