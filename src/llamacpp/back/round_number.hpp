// The roundest number that has a property: people write 1.4 into a config.json, and a GGUF has a float of something
// computed from it.
#pragma once

#include <charconv>
#include <cmath>
#include <string>

#include <fmt/format.h>
#include <ballast/json.hpp>

namespace ballast::llamacpp::back {

inline bool is_float(double value, double wanted) { return static_cast<float>(value) == static_cast<float>(wanted); }

// Near `guess`, with as few digits as possible; null if there is none.
template <class Has>
Json round_number(double guess, Has has) {
  constexpr int kMostDigits = 17;
  if (!std::isfinite(guess)) return {};
  for (int digits = 1; digits <= kMostDigits; ++digits) {
    const std::string text = fmt::format("{:.{}g}", guess, digits);
    double rounded = 0;
    std::from_chars(text.data(), text.data() + text.size(), rounded);
    if (has(rounded)) return rounded;
  }
  return {};
}

}  // namespace ballast::llamacpp::back
