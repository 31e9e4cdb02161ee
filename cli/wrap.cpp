#include "wrap.hpp"

#include <algorithm>
#include <iterator>

#include "terminal.hpp"

namespace ballast::cli {
namespace {

constexpr std::size_t kHang = 2;  // of lines below a label that is wide

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Whether the space is in a shape or an index: "[256, 256]".
bool is_in_brackets(std::string_view before) {
  const std::size_t open = before.find_last_of("[]");
  return open != before.npos && before[open] == '[' &&
         before.find_first_not_of("-0123456789, ", open + 1) == before.npos;
}

// Whether the space between these texts holds a number together: "11 008", "1.02 kB".
bool is_in_number(std::string_view before, std::string_view after) {
  constexpr std::string_view kUnits[] = {"B", "kB", "MB", "GB", "TB", "PB", "%", "M", "s", "ms"};
  if (before.empty() || !is_digit(before.back())) return false;
  const std::string_view next = after.substr(0, after.find_first_of(" ,;.):"));
  const bool is_group = next.size() == 3 && std::ranges::all_of(next, is_digit);
  return is_group || std::ranges::find(kUnits, next) != std::end(kUnits);
}

// Whether the text may not be broken at this space. Lists of numbers may be as long as a vocabulary.
bool holds_together(std::string_view text, std::size_t space) {
  constexpr std::size_t kLongest = 32;
  const std::string_view before = text.substr(0, space);
  return space <= kLongest && (is_in_number(before, text.substr(space + 1)) || is_in_brackets(before));
}

// A word may have spaces that hold it together.
std::string_view take_word(std::string_view& text) {
  std::size_t end = text.find(' ');
  while (end != text.npos && holds_together(text, end)) end = text.find(' ', end + 1);
  end = std::min(end, text.size());
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return word;
}

}  // namespace

std::vector<std::string> wrapped(std::string_view text, std::size_t room) {
  std::vector<std::string> lines(1);
  while (!text.empty()) {
    const std::string_view word = take_word(text);
    if (!lines.back().empty() && columns_of(lines.back()) + 1 + columns_of(word) > room) lines.emplace_back();
    if (!lines.back().empty()) lines.back() += ' ';
    lines.back() += word;
  }
  return lines;
}

std::size_t widest_word(std::string_view text) {
  std::size_t widest = 0;
  while (!text.empty()) widest = std::max(widest, columns_of(take_word(text)));
  return widest;
}

std::string labelled(const Terminal& terminal, std::string_view label, std::string_view text) {
  if (!terminal.interactive) return std::string(label).append(text);
  const std::string words = terminal.utf8 ? std::string(text) : prose_in_ascii(text);
  std::string shown = terminal.utf8 ? std::string(label) : prose_in_ascii(label);
  std::size_t column = columns_of(shown);
  std::size_t hang = column * 2 <= terminal.width ? column : kHang;
  if (hang + widest_word(words) > terminal.width) hang = std::min(hang, kHang);
  bool is_between_words = false;
  for (std::string_view rest = words; !rest.empty();) {
    const std::string_view word = take_word(rest);
    const std::size_t columns = columns_of(word);
    const bool fits = column + (is_between_words ? 1 : 0) + columns <= terminal.width;
    if (!fits && column > hang) {
      shown.erase(shown.find_last_not_of(' ') + 1);
      shown.append("\n").append(hang, ' ');
      column = hang;
    } else if (is_between_words) {
      shown += ' ';
      ++column;
    }
    shown += word;
    column += columns;
    is_between_words = true;
  }
  return shown;
}

}  // namespace ballast::cli
