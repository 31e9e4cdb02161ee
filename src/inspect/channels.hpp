// Statistics for each index of one dimension of a tensor, in one pass.
#pragma once

#include <vector>

#include <ballast/stats.hpp>

#include "inspect/value_pass.hpp"

namespace ballast {

// The number of the dimension that `axis` means; negative ones count from the last. Throws Errc::invalid_argument if
// the tensor has no such dimension, and Errc::limit if the dimension has more than kMostChannels channels.
std::size_t channel_dimension(const Tensor& tensor, std::int64_t axis);

// `pass` has one tensor. Memory is that of the channels, once more for each thread.
std::vector<ChannelStats> channels_of(const ValuePass& pass, const Tensor& tensor, std::size_t dimension,
                                      unsigned threads, ProgressMeter& meter);

}  // namespace ballast
