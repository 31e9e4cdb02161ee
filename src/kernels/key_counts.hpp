// Counts values by integers that have the same order as the values: the way to exact quantiles in bounded memory.
//
// A key is taken apart into digits of 16 bits, the upper ones first. The first pass over the values counts the first
// digit; each further pass counts the next digit of the keys that begin with one of a few prefixes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <ballast/dtype.hpp>

namespace ballast::kernels {

inline constexpr unsigned kKeyDigitBits = 16;
inline constexpr std::size_t kKeyDigits = std::size_t{1} << kKeyDigitBits;  // values that a digit can have

// How many digits a key has: 1 for types of up to 16 bits, 2 for F32, 4 for types that are taken as F64.
unsigned key_length(DType dtype) noexcept;

// The value that a whole key stands for; both zeros are 0.
double value_of_key(DType dtype, std::uint64_t key) noexcept;

// The first digits of the keys that a pass counts.
class KeyPrefixes {
 public:
  KeyPrefixes() : prefixes_{0} {}  // no digits: every key

  // `length` digits each, at least 1; sorted, without repetitions.
  KeyPrefixes(unsigned length, std::vector<std::uint64_t> prefixes);

  unsigned length() const noexcept { return length_; }
  std::span<const std::uint64_t> all() const noexcept { return prefixes_; }

  // The number of the prefix that `key` begins with, or the number of prefixes. `digits` is the length of the key.
  std::size_t find(std::uint64_t key, unsigned digits) const noexcept;

 private:
  unsigned length_ = 0;
  std::vector<std::uint64_t> prefixes_;
  std::vector<bool> begins_;  // whether a prefix has this first digit
};

// Counts the digit behind the prefix: `counts` has kKeyDigits numbers for each prefix. NaN is left out. The function
// owns nothing, so it may be abandoned half-way; `counts` is then useless.
void count_keys(std::span<std::uint64_t> counts, const KeyPrefixes& prefixes, DType dtype,
                std::span<const std::byte> bytes) noexcept;

}  // namespace ballast::kernels
