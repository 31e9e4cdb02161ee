#include "llamacpp/python_json.hpp"

#include <algorithm>
#include <array>
#include <string>

#include <ballast/error.hpp>

namespace ballast::llamacpp {
namespace {

constexpr std::size_t kSafeDigits = 18;  // so many always fit 64 bits
constexpr std::string_view kNumberLetters = "0123456789+-.eE";
constexpr std::array<std::string_view, 3> kNoNumbers = {"-Infinity", "Infinity", "NaN"};

// The end of a string that begins at `text[0]`.
std::size_t string_end(std::string_view text) {
  std::size_t at = 1;
  while (at < text.size() && text[at] != '"') at += text[at] == '\\' ? 2u : 1u;
  return std::min(at + 1, text.size());
}

bool is_long_integer(std::string_view number) {
  return number.size() > kSafeDigits && number.find_first_of(".eE+") == number.npos;
}

// The same text with numbers that Json::parse() can hold.
std::string with_plain_numbers(std::string_view text) {
  std::string plain;
  while (!text.empty()) {
    std::size_t size = 1;
    std::string_view written;
    const auto no_number = std::ranges::find_if(kNoNumbers, [&](auto word) { return text.starts_with(word); });
    if (text[0] == '"') {
      size = string_end(text);
    } else if (no_number != kNoNumbers.end()) {
      size = no_number->size();
      written = "null";
    } else if (kNumberLetters.find(text[0]) != kNumberLetters.npos) {
      size = std::min(text.find_first_not_of(kNumberLetters), text.size());
    }
    const std::string_view word = text.substr(0, size);
    plain.append(written.empty() ? word : written);
    if (is_long_integer(word) && text[0] != '"') plain += ".0";
    text.remove_prefix(size);
  }
  return plain;
}

}  // namespace

Json parse_python_json(std::string_view text) {
  try {
    return Json::parse(text);
  } catch (const Error& error) {
    if (error.code() != Errc::malformed) throw;
    const std::string plain = with_plain_numbers(text);
    if (plain == text) throw;
    return Json::parse(plain);
  }
}

}  // namespace ballast::llamacpp
