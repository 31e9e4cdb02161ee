// ChannelSums: sums and extremes of a tensor's values for each index of one dimension.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include <ballast/dtype.hpp>

namespace ballast::kernels {

// One channel. Sums are those of distances from the first finite value, so that they lose little to cancellation.
struct ChannelSum {
  std::uint64_t finite = 0, nans = 0, infinities = 0;
  double first = 0, sum = 0, squares = 0;
  double min = std::numeric_limits<double>::infinity(), max = -std::numeric_limits<double>::infinity();

  void add(double value) noexcept;
  void merge(const ChannelSum& next) noexcept;
  double mean() const noexcept;
  double variance() const noexcept;
};

// A tensor is [outer, channels, inner], and a stretch of its elements begins at element `first`.
class ChannelSums {
 public:
  ChannelSums(std::uint64_t channels, std::uint64_t inner, std::uint64_t first)
      : inner_(inner), channel_(first / inner % channels), left_(inner - first % inner), sums_(channels) {}

  // Adds a whole number of blocks. Owns nothing while it runs but what it has already.
  void add(DType dtype, std::span<const std::byte> bytes) noexcept;

  std::span<const ChannelSum> sums() const noexcept { return sums_; }

 private:
  std::uint64_t inner_, channel_;
  std::uint64_t left_;  // elements that the channel has left before the next channel begins
  std::vector<ChannelSum> sums_;
};

}  // namespace ballast::kernels
