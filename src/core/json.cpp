#include <ballast/error.hpp>
#include <ballast/json.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "core/json_string.hpp"
#include "core/text.hpp"

// Recursion is safe here: the parser refuses a document that is nested more than 64 deep.
// NOLINTBEGIN(misc-no-recursion)
namespace ballast {
namespace {

class Printer {
 public:
  explicit Printer(unsigned indent) : indent_(indent) {}

  void print(const Json& json) {
    if (json.is_null()) text_ += "null";
    if (json.is_bool()) text_ += json.boolean() ? "true" : "false";
    if (json.is_integer()) print_integer(json);
    if (json.is_double()) print_double(json.number());
    if (json.is_text()) append_json_string(text_, json.text());
    if (json.is_list()) {
      print_all('[', json.list(), ']', [&](const Json& item) { print(item); });
    }
    if (json.is_object()) {
      print_all('{', json.members(), '}', [&](const Json::Member& member) {
        append_json_string(text_, member.first);
        text_ += indent_ == 0 ? ":" : ": ";
        print(member.second);
      });
    }
  }

  std::string take() { return std::move(text_); }

 private:
  void print_integer(const Json& json) {
    const bool is_large = json.number() > 0x1p62;
    text_ += is_large ? std::to_string(json.count()) : std::to_string(json.integer());
  }

  // Prints the shortest text that reads back as the same double, and not as an integer, with an exponent whenever
  // Python writes one. JSON has no NaN, but Python's reader accepts it.
  void print_double(double value) {
    if (std::isnan(value)) text_ += "NaN";
    if (std::isinf(value)) text_ += value > 0 ? "Infinity" : "-Infinity";
    if (!std::isfinite(value)) return;
    char buffer[32];
    const double size = std::abs(value);
    const bool is_plain = value == 0 || (size >= 1e-4 && size < 1e16);
    const auto form = is_plain ? std::chars_format::fixed : std::chars_format::scientific;
    const auto end = std::to_chars(buffer, buffer + sizeof buffer, value, form).ptr;
    const std::string_view shortest(buffer, static_cast<std::size_t>(end - buffer));
    text_ += shortest;
    if (shortest.find_first_of(".e") == std::string_view::npos) text_ += ".0";
  }

  template <class Items, class Print>
  void print_all(char open, const Items& items, char close, const Print& print_one) {
    text_ += open;
    depth_ += indent_;
    bool is_first = true;
    for (const auto& item : items) {
      if (!is_first) text_ += ',';
      is_first = false;
      break_line();
      print_one(item);
    }
    depth_ -= indent_;
    if (!is_first) break_line();
    text_ += close;
  }

  void break_line() {
    if (indent_ != 0) text_ += "\n" + std::string(depth_, ' ');
  }

  unsigned indent_;
  std::size_t depth_ = 0;
  std::string text_;
};

}  // namespace

Json::Json() noexcept = default;
Json::Json(std::nullptr_t) noexcept {}
Json::Json(bool value) : value_(value) {}
Json::Json(int value) : value_(std::int64_t{value}) {}
Json::Json(std::int64_t value) : value_(value) {}
Json::Json(double value) : value_(value) {}
Json::Json(const char* value) : value_(std::string(value)) {}
Json::Json(std::string_view value) : value_(std::string(value)) {}
Json::Json(std::string value) : value_(std::move(value)) {}
Json::Json(List value) : value_(std::move(value)) {}
Json::Json(Members value) : value_(std::move(value)) {}

Json::Json(std::uint64_t value) {
  if (value <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    value_ = static_cast<std::int64_t>(value);
  else
    value_ = value;
}

Json::Json(const Json& other) = default;
Json::Json(Json&& other) noexcept = default;
Json& Json::operator=(const Json& other) = default;
Json& Json::operator=(Json&& other) noexcept = default;
Json::~Json() = default;

bool operator==(const Json& a, const Json& b) { return a.value_ == b.value_; }

void Json::throw_not(std::string_view what) const {
  std::string shown = to_string(*this);
  if (shown.size() > 40) shown = shown.substr(0, 37) + "...";
  throw Error(Errc::malformed, escape_for_terminal(shown) + " is no " + std::string(what));
}

bool Json::boolean() const {
  if (const bool* value = std::get_if<bool>(&value_)) return *value;
  throw_not("true or false");
}

std::int64_t Json::integer() const {
  if (const auto* value = std::get_if<std::int64_t>(&value_)) return *value;
  throw_not("integer");
}

std::uint64_t Json::count() const {
  if (const auto* value = std::get_if<std::int64_t>(&value_); value != nullptr && *value >= 0)
    return static_cast<std::uint64_t>(*value);
  if (const auto* value = std::get_if<std::uint64_t>(&value_)) return *value;
  throw_not("whole number of at least 0");
}

double Json::number() const {
  if (const auto* value = std::get_if<double>(&value_)) return *value;
  if (const auto* value = std::get_if<std::int64_t>(&value_)) return static_cast<double>(*value);
  if (const auto* value = std::get_if<std::uint64_t>(&value_)) return static_cast<double>(*value);
  throw_not("number");
}

const std::string& Json::text() const {
  if (const auto* value = std::get_if<std::string>(&value_)) return *value;
  throw_not("string");
}

const Json::List& Json::list() const {
  if (const auto* value = std::get_if<List>(&value_)) return *value;
  throw_not("list");
}

const Json::Members& Json::members() const {
  if (const auto* value = std::get_if<Members>(&value_)) return *value;
  throw_not("object");
}

const Json* Json::find(std::string_view key) const noexcept {
  const auto* members = std::get_if<Members>(&value_);
  if (members == nullptr) return nullptr;
  const auto member = std::ranges::find(*members, key, &Member::first);
  return member == members->end() ? nullptr : &member->second;
}

const Json& Json::at(std::string_view key) const {
  if (const Json* value = find(key)) return *value;
  throw Error(Errc::malformed, "there is no " + quote(key));
}

void Json::set(std::string_view key, Json value) {
  if (is_null()) value_ = Members();
  auto* members = std::get_if<Members>(&value_);
  if (members == nullptr) throw_not("object");
  const auto member = std::ranges::find(*members, key, &Member::first);
  if (member == members->end())
    members->emplace_back(key, std::move(value));
  else
    member->second = std::move(value);
}

void Json::erase(std::string_view key) {
  if (auto* members = std::get_if<Members>(&value_))
    std::erase_if(*members, [&](const Member& member) { return member.first == key; });
}

std::string to_string(const Json& json, unsigned indent) {
  Printer printer(indent);
  printer.print(json);
  return printer.take();
}

}  // namespace ballast
// NOLINTEND(misc-no-recursion)
