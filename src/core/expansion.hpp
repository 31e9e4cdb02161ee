// How much more than its own bytes an input may become: the limit against bombs, in one place.
#pragma once

#include <algorithm>
#include <cstdint>

#include <ballast/limits.hpp>

namespace ballast {

// `added` to the `real` bytes: more than either of the limits allows, of which the larger counts.
inline bool expands_too_much(const Limits& limits, std::uint64_t added, std::uint64_t real) noexcept {
  return added > limits.max_expansion_bytes &&
         added / std::max<std::uint64_t>(limits.max_expansion_ratio, 1) > real;  // the ratio is the user's: it may be 0
}

}  // namespace ballast
