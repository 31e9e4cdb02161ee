// The limit against bombs: how many more bytes than its own an input may become. The limit is decided here alone.
#pragma once

#include <algorithm>
#include <cstdint>

#include <ballast/limits.hpp>

namespace ballast {

// Whether `added` bytes are more than both limits allow for an input of `real` bytes: the larger limit counts.
inline bool expands_too_much(const Limits& limits, std::uint64_t added, std::uint64_t real) noexcept {
  return added > limits.max_expansion_bytes &&
         added / std::max<std::uint64_t>(limits.max_expansion_ratio, 1) > real;  // a user may set a ratio of 0
}

}  // namespace ballast
