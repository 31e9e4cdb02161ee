// Checked arithmetic: the one door for sizes. Every number that comes from a file is added, multiplied and aligned
// here.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <ballast/error.hpp>

namespace ballast {

constexpr std::optional<std::uint64_t> checked_add(std::uint64_t a, std::uint64_t b) noexcept {
  std::uint64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

constexpr std::optional<std::uint64_t> checked_mul(std::uint64_t a, std::uint64_t b) noexcept {
  std::uint64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

// The smallest multiple of `alignment` that is not below `value`. Empty if the multiple does not fit 64 bits, or if the
// alignment is not a power of two (an alignment, too, may come from a file).
constexpr std::optional<std::uint64_t> checked_align_up(std::uint64_t value, std::uint64_t alignment) noexcept {
  if (!std::has_single_bit(alignment)) return std::nullopt;
  const auto past = checked_add(value, alignment - 1);
  if (!past) return std::nullopt;
  return *past & ~(alignment - 1);
}

// Whether [offset, offset + size) lies inside [0, total), without an addition that could wrap.
constexpr bool is_inside(std::uint64_t offset, std::uint64_t size, std::uint64_t total) noexcept {
  return size <= total && offset <= total - size;
}

// Unwraps a size that the caller cannot go on without: `what` completes "… does not fit 64 bits".
constexpr std::uint64_t fits(std::optional<std::uint64_t> size, std::string_view what) {
  if (!size) throw Error(Errc::malformed, std::string(what) + " does not fit 64 bits");
  return *size;
}

}  // namespace ballast
