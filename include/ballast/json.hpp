// Json: a small JSON document in memory, its members in order: configurations, rules, agreements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace ballast {

class Json {
 public:
  using List = std::vector<Json>;
  using Member = std::pair<std::string, Json>;
  using Members = std::vector<Member>;

  Json() noexcept;                // null
  Json(std::nullptr_t) noexcept;  // NOLINT(google-explicit-constructor)
  Json(bool value);               // NOLINT(google-explicit-constructor)
  Json(int value);                // NOLINT(google-explicit-constructor)
  Json(std::int64_t value);       // NOLINT(google-explicit-constructor)
  Json(std::uint64_t value);      // NOLINT(google-explicit-constructor)
  Json(double value);             // NOLINT(google-explicit-constructor)
  Json(const char* value);        // NOLINT(google-explicit-constructor)
  Json(std::string_view value);   // NOLINT(google-explicit-constructor)
  Json(std::string value);        // NOLINT(google-explicit-constructor)
  Json(List value);               // NOLINT(google-explicit-constructor)
  Json(Members value);            // NOLINT(google-explicit-constructor)

  Json(const Json& other);
  Json(Json&& other) noexcept;
  Json& operator=(const Json& other);
  Json& operator=(Json&& other) noexcept;
  ~Json();

  // Throws Errc::malformed, also for a key that an object has twice, and Errc::limit for what is nested deeper than 64.
  static Json parse(std::string_view text);

  bool is_null() const noexcept { return std::holds_alternative<std::monostate>(value_); }
  bool is_bool() const noexcept { return std::holds_alternative<bool>(value_); }
  bool is_integer() const noexcept {
    return std::holds_alternative<std::int64_t>(value_) || std::holds_alternative<std::uint64_t>(value_);
  }
  bool is_double() const noexcept { return std::holds_alternative<double>(value_); }
  bool is_number() const noexcept { return is_integer() || is_double(); }
  bool is_text() const noexcept { return std::holds_alternative<std::string>(value_); }
  bool is_list() const noexcept { return std::holds_alternative<List>(value_); }
  bool is_object() const noexcept { return std::holds_alternative<Members>(value_); }

  // Each throws Errc::malformed where the value is something else.
  bool boolean() const;
  std::int64_t integer() const;
  std::uint64_t count() const;  // an integer of at least 0
  double number() const;        // of either kind
  const std::string& text() const;
  const List& list() const;
  const Members& members() const;

  const Json* find(std::string_view key) const noexcept;  // nothing where it is not there, or this is no object
  const Json& at(std::string_view key) const;             // throws Errc::malformed
  void set(std::string_view key, Json value);             // in its place, or at the end; null becomes an object
  void erase(std::string_view key);

  friend bool operator==(const Json& a, const Json& b);

 private:
  [[noreturn]] void throw_not(std::string_view what) const;

  // Unsigned only beyond what is signed.
  std::variant<std::monostate, bool, std::int64_t, std::uint64_t, double, std::string, List, Members> value_;
};

// On one line without spaces; or, with an indent, over several, as Python's json.dumps does it.
std::string to_string(const Json& json, unsigned indent = 0);

}  // namespace ballast
