// Values of a config.json as Python sees them: a key that is missing is null, true is 1, and anything can be a
// condition.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>

#include <ballast/json.hpp>

namespace ballast::llamacpp {

inline bool is_null(const Json* value) { return value == nullptr || value->is_null(); }

inline std::optional<std::int64_t> whole_number(const Json* value) {
  if (value == nullptr) return std::nullopt;
  if (value->is_bool()) return value->boolean() ? 1 : 0;
  if (!value->is_integer() || value->number() >= 0x1p63) return std::nullopt;
  return value->integer();
}

inline std::optional<double> real_number(const Json* value) {
  if (value == nullptr) return std::nullopt;
  if (value->is_bool()) return value->boolean() ? 1.0 : 0.0;
  if (!value->is_number()) return std::nullopt;
  return value->number();
}

// What `if value` asks.
inline bool is_true(const Json* value) {
  if (is_null(value)) return false;
  if (const auto number = real_number(value)) return *number != 0;
  if (value->is_text()) return !value->text().empty();
  return value->is_list() ? !value->list().empty() : !value->members().empty();
}

// int(x): nothing if it does not fit.
inline std::optional<std::int64_t> truncated(double x) {
  if (!(std::abs(x) < 9e18)) return std::nullopt;
  return static_cast<std::int64_t>(x);
}

}  // namespace ballast::llamacpp
