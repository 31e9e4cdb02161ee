// Numbers to encode: as weights have them, and as attackers choose them.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <vector>

namespace ballast::test {

using Floats = std::vector<float>;

constexpr float kMost = std::numeric_limits<float>::max();

// A kind of numbers, made one after the other from a random generator.
struct Kind {
  const char* name;
  std::function<float(std::mt19937_64&, std::size_t index)> element;
};

inline float gaussian(std::mt19937_64& random, float sigma) {
  return std::normal_distribution<float>(0, sigma)(random);
}
inline bool one_in(std::mt19937_64& random, unsigned n) { return random() % n == 0; }
inline float signed_zero(std::mt19937_64& random) { return one_in(random, 2) ? 0.0F : -0.0F; }

// Returns any finite bits.
inline float any_float(std::mt19937_64& random) {
  const auto bits = static_cast<std::uint32_t>(random());
  return std::bit_cast<float>((bits & 0x7F80'0000) == 0x7F80'0000 ? bits ^ 0x4000'0000 : bits);
}

inline const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all = {
      {"gaussian", [](auto& random, auto) { return gaussian(random, 0.02F); }},
      {"outliers", [](auto& random, auto) { return gaussian(random, one_in(random, 40) ? 300.0F : 0.02F); }},
      {"mixed sizes", [](auto& random, auto i) { return gaussian(random, std::ldexp(1.0F, int(i / 16 % 50) - 30)); }},
      {"zeros of both signs", [](auto& random, auto) { return signed_zero(random); }},
      {"mostly zeros",
       [](auto& random, auto) { return one_in(random, 9) ? gaussian(random, 1) : signed_zero(random); }},
      {"none below zero",
       [](auto& random, auto) { return one_in(random, 9) ? signed_zero(random) : std::fabs(gaussian(random, 1)); }},
      {"all below zero", [](auto& random, auto) { return -3 - std::fabs(gaussian(random, 1)); }},
      {"small integers", [](auto& random, auto) { return static_cast<float>(random() % 17) - 8; }},
      {"both signs equally far", [](auto& random, auto) { return one_in(random, 2) ? 1.5F : -1.5F; }},
      {"constants", [](auto&, auto i) { return 0.37F * static_cast<float>(i / 512 % 7) - 1; }},
      {"subnormals", [](auto& random, auto) { return gaussian(random, 1e-39F); }},
      {"scales that F16 cannot hold", [](auto& random, auto) { return gaussian(random, 1e-9F); }},
      {"around what is taken for zero",
       [](auto& random, auto i) { return i % 16 == 0 ? 1e-15F : gaussian(random, 4e-16F); }},
      {"sums that overflow", [](auto& random, auto) { return gaussian(random, 1e38F); }},
      {"nearly the largest", [](auto& random, auto) { return one_in(random, 2) ? kMost : -kMost; }},
      {"any bits", [](auto& random, auto) { return any_float(random); }},
  };
  return all;
}

inline Floats make(const Kind& kind, std::size_t count) {
  std::mt19937_64 random(count);
  Floats values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = std::clamp(kind.element(random, i), -kMost, kMost);
  return values;
}

}  // namespace ballast::test
