// Sums for people: one that does not fit 64 bits is the largest number instead.
#pragma once

#include <cstdint>
#include <limits>

#include "core/checked.hpp"

namespace ballast {

constexpr std::uint64_t saturating_add(std::uint64_t a, std::uint64_t b) noexcept {
  return checked_add(a, b).value_or(std::numeric_limits<std::uint64_t>::max());
}

constexpr std::uint64_t saturating_mul(std::uint64_t a, std::uint64_t b) noexcept {
  return checked_mul(a, b).value_or(std::numeric_limits<std::uint64_t>::max());
}

}  // namespace ballast
