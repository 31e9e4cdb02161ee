// Json: a small JSON document in memory, for configurations, rules and agreements. Members keep their order.
//
// A Json owns all that is in it; copying it copies the whole document. Several threads may read one, but not while
// another changes it. Finding a key goes through the members one after the other.
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

  // Throws Errc::malformed, also if an object has a key twice, and Errc::limit if values are nested deeper than 64 or
  // if there are more than 8 million of them.
  static Json parse(std::string_view text);

  // The same for what Python's json module writes: NaN and Infinity are doubles, and an integer that does not fit 64
  // bits becomes a double. Most tokenizer_config.json have such an integer.
  static Json parse_python(std::string_view text);

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

  // Each throws Errc::malformed if the value is of another kind.
  bool boolean() const;
  std::int64_t integer() const;
  std::uint64_t count() const;  // an integer of at least 0
  double number() const;        // an integer or a double
  const std::string& text() const;
  const List& list() const;
  const Members& members() const;

  const Json* find(std::string_view key) const noexcept;  // null if there is no such key, or if this is not an object
  const Json& at(std::string_view key) const;             // throws Errc::malformed
  void set(std::string_view key, Json value);             // replaces or appends; null becomes an object first
  void erase(std::string_view key);

  friend bool operator==(const Json& a, const Json& b);

 private:
  [[noreturn]] void throw_not(std::string_view what) const;

  // An integer is unsigned only if it does not fit the signed type.
  std::variant<std::monostate, bool, std::int64_t, std::uint64_t, double, std::string, List, Members> value_;
};

// The text on one line without spaces; with an indent, on several lines, as Python's json.dumps writes it.
std::string to_string(const Json& json, unsigned indent = 0);

}  // namespace ballast
