#include "llamacpp/python_json.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <ballast/error.hpp>

namespace ballast::llamacpp {
namespace {

constexpr std::size_t kSafeDigits = 18;  // so many always fit 64 bits
constexpr std::string_view kNumberLetters = "0123456789+-.eE";

struct NamedNumber {
  std::string_view name;
  double value;
};
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr NamedNumber kNamedNumbers[] = {
    {"-Infinity", -kInfinity}, {"Infinity", kInfinity}, {"NaN", std::numeric_limits<double>::quiet_NaN()}};

// The end of a string that begins at `text[0]`.
std::size_t string_end(std::string_view text) {
  std::size_t at = 1;
  while (at < text.size() && text[at] != '"') at += text[at] == '\\' ? 2u : 1u;
  return std::min(at + 1, text.size());
}

bool is_long_integer(std::string_view number) {
  return number.size() > kSafeDigits && number.find_first_of(".eE+") == number.npos;
}

// A document that Json::parse() can read: numbers with names are null in it.
struct PlainText {
  struct Null {
    std::size_t which;  // of all nulls of the document, in their order
    double value;
  };
  std::string text;
  std::vector<Null> named;
};

PlainText plain_text_of(std::string_view text) {
  PlainText plain;
  std::size_t nulls = 0;
  while (!text.empty()) {
    std::size_t size = 1;
    const auto* named =
        std::ranges::find_if(kNamedNumbers, [&](const auto& row) { return text.starts_with(row.name); });
    if (named != std::end(kNamedNumbers)) {
      plain.text += "null";
      plain.named.push_back({nulls++, named->value});
      text.remove_prefix(named->name.size());
      continue;
    }
    if (text.starts_with("null")) ++nulls;
    if (text[0] == '"') {
      size = string_end(text);
    } else if (kNumberLetters.find(text[0]) != kNumberLetters.npos) {
      size = std::min(text.find_first_not_of(kNumberLetters), text.size());
    }
    const std::string_view word = text.substr(0, size);
    plain.text += word;
    if (is_long_integer(word) && text[0] != '"') plain.text += ".0";
    text.remove_prefix(size);
  }
  return plain;
}

// Goes through a document in the order of its text, and gives the numbers back that have names.
class NumberRestorer {
 public:
  explicit NumberRestorer(const PlainText& plain) : next_(plain.named.begin()), end_(plain.named.end()) {}

  // JSON is nested at most 64 deep, and so are these calls.
  Json restored(const Json& json) {
    if (json.is_list()) {
      Json::List items;
      items.reserve(json.list().size());
      for (const Json& item : json.list()) items.push_back(restored(item));
      return Json(std::move(items));
    }
    if (json.is_object()) {
      Json::Members members;
      members.reserve(json.members().size());
      for (const auto& [key, value] : json.members()) members.emplace_back(key, restored(value));
      return Json(std::move(members));
    }
    if (!json.is_null()) return json;
    const bool is_named = next_ != end_ && next_->which == nulls_;
    ++nulls_;
    return is_named ? Json((next_++)->value) : json;
  }

 private:
  std::vector<PlainText::Null>::const_iterator next_, end_;
  std::size_t nulls_ = 0;
};

}  // namespace

Json parse_python_json(std::string_view text) {
  try {
    return Json::parse(text);
  } catch (const Error& error) {
    if (error.code() != Errc::malformed) throw;
    const PlainText plain = plain_text_of(text);
    if (plain.text == text) throw;
    const Json json = Json::parse(plain.text);
    return plain.named.empty() ? json : NumberRestorer(plain).restored(json);
  }
}

}  // namespace ballast::llamacpp
