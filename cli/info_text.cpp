#include "info_text.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "session.hpp"
#include "wrap.hpp"

namespace ballast::cli {
namespace {

constexpr std::size_t kLabelWidth = 12, kLeastRoom = 20, kLeastKey = 12;
constexpr std::string_view kEquals = " = ", kOfNumbers = "0123456789.+-eE";

bool is_number(std::string_view text) {
  return text.find_first_of("0123456789") != text.npos && text.find_first_not_of(kOfNumbers) == text.npos;
}

// The text without its end, which is cut off before a number rather than in it.
std::string shortened(const std::string& text, std::size_t columns, std::string_view ellipsis) {
  const std::string cut = abbreviate(text, columns, ellipsis);
  if (cut == text) return text;
  std::size_t end = cut.size() - ellipsis.size();
  if (kOfNumbers.find(text[end]) != kOfNumbers.npos) {
    while (end > 0 && kOfNumbers.find(text[end - 1]) != kOfNumbers.npos) --end;
  }
  return text.substr(0, end).append(ellipsis);
}

}  // namespace

void InfoText::facts(std::string_view label, const std::vector<std::string>& items) {
  for (const std::string& item : items) {
    if (!session_.screen.interactive) {
      write(std::exchange(label, ""), item);
      continue;
    }
    for (const std::string& part : wrapped(spelled(item), room())) {
      write(std::exchange(label, ""), session_.shows_all() ? part : elided(part, room(), session_.screen.ellipsis()));
    }
  }
}

void InfoText::pairs(std::string_view label, const std::vector<std::pair<std::string, std::string>>& items) {
  for (const auto& [key, value] : items) {
    for (const std::string& part : pair_lines(spelled(key), spelled(value))) write(std::exchange(label, ""), part);
  }
}

std::vector<std::string> InfoText::pair_lines(const std::string& key, const std::string& value) const {
  const std::string whole = fmt::format("{}{}{}", key, kEquals, value);
  if (session_.shows_all() || columns_of(whole) <= room()) return {whole};
  const std::string_view ellipsis = session_.screen.ellipsis();
  const std::size_t both = room() - kEquals.size(), wanted = columns_of(value);
  const std::size_t least_key = std::min(columns_of(key), is_number(value) ? kLeastKey : both / 2);
  const std::string shown_key = elided(key, std::max(least_key, both - std::min(both, wanted)), ellipsis);
  const std::size_t beside = both - std::min(both, columns_of(shown_key));
  if (is_number(value) && wanted > beside) return {elided(key, both, ellipsis) + " =", value};
  return {fmt::format("{}{}{}", shown_key, kEquals, shortened(value, beside, ellipsis))};
}

std::size_t InfoText::room() const {
  const std::size_t width = session_.screen.width;
  return std::max(width - std::min(width, kLabelWidth), kLeastRoom);
}

std::string InfoText::spelled(const std::string& text) const {
  return session_.screen.utf8 ? text : prose_in_ascii(text);
}

void InfoText::write(std::string_view label, std::string_view text) {
  session_.out.line(
      fmt::format("{}{}", session_.screen.paint(Color::bold, fmt::format("{:<{}}", label, kLabelWidth)), text));
}

}  // namespace ballast::cli
