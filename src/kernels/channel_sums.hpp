// ChannelSums: sums and extremes of a tensor's values for each index of one dimension.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include <ballast/dtype.hpp>

namespace ballast::kernels {

// One channel. Sums are those of distances from one of the values, so that they lose little to cancellation.
struct ChannelSum {
  std::uint64_t finite = 0, nans = 0, infinities = 0;
  double shift = 0, sum = 0, squares = 0;  // of value - shift
  double min = std::numeric_limits<double>::infinity(), max = -std::numeric_limits<double>::infinity();

  void add(double value) noexcept;
  void merge(const ChannelSum& next) noexcept;
  double mean() const noexcept;
  double variance() const noexcept;
};

// A tensor is [outer, channels, inner], and a stretch of its elements begins at element `first`.
class ChannelSums {
 public:
  ChannelSums(std::uint64_t channels, std::uint64_t inner, std::uint64_t first);

  // Adds a whole number of blocks. Allocates nothing, so it may be abandoned half-way; the sums are then useless.
  void add(DType dtype, std::span<const std::byte> bytes) noexcept;

  ChannelSum at(std::size_t channel) const noexcept;

 private:
  template <class T>
  void add_runs(const T* values, std::size_t count) noexcept;
  template <class T>
  void add_side_by_side(const T* values, std::size_t count) noexcept;
  template <class T>
  void add_run(const T* values, std::size_t count) noexcept;
  void put(std::size_t channel, const ChannelSum& sum) noexcept;

  std::uint64_t channels_, inner_, channel_;
  std::uint64_t left_;  // elements that the channel has left before the next channel begins
  // The fields of ChannelSum, side by side, so that vector code can add a row of the tensor to a row of sums.
  std::vector<std::uint64_t> finite_, nans_, infinities_;
  std::vector<double> shift_, sum_, squares_, min_, max_;
};

}  // namespace ballast::kernels
