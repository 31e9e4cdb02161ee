#include "terminal.hpp"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <utility>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <ballast/text.hpp>

#include "character_widths.hpp"
#include "utf8.hpp"

namespace ballast::cli {
namespace {

constexpr std::string_view kSequences[] = {"", "1", "2", "31", "32", "33", "36"};

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : value;
}

bool wants_color(bool interactive, ColorMode mode) {
  if (mode != ColorMode::automatic) return mode == ColorMode::always;
  return interactive && environment("NO_COLOR").empty() && environment("TERM") != "dumb";
}

// LC_ALL counts before LC_CTYPE, and that before LANG.
bool has_utf8_locale() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const std::string_view value = environment(name);
    if (value.empty()) continue;
    std::string lower;
    for (const char c : value) lower += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    return lower.find("utf-8") != lower.npos || lower.find("utf8") != lower.npos;
  }
  return false;
}

// The pieces that are shown or left out as one: a character with its marks, or an escape sequence.
struct Piece {
  std::size_t bytes, columns;
};

Piece next_piece(std::string_view text) {
  if (text[0] == '\x1b') return {std::min(text.find('m'), text.size() - 1) + 1, 0};
  const DecodedCharacter first = decode_utf8(text);
  if (first.size == 0) return {1, 1};
  Piece piece{first.size, width_of(first.code)};
  while (piece.bytes < text.size() && text[piece.bytes] != '\x1b') {
    const DecodedCharacter mark = decode_utf8(text.substr(piece.bytes));
    if (mark.size == 0 || width_of(mark.code) != 0) break;
    piece.bytes += mark.size;
  }
  return piece;
}

}  // namespace

std::string Terminal::paint(Color color, std::string_view text) const {
  if (!colored || color == Color::plain || text.empty()) return std::string(text);
  return fmt::format("\x1b[{}m{}\x1b[0m", kSequences[static_cast<std::size_t>(color)], text);
}

std::string Terminal::bytes(std::uint64_t count) const {
  return interactive ? format_bytes(count) : std::to_string(count);
}

std::string Terminal::bytes_in_words(std::uint64_t count) const {
  return interactive ? format_bytes(count) : plural(count, "byte");
}

std::string Terminal::count(std::uint64_t count) const {
  return interactive ? format_count(count) : std::to_string(count);
}

std::string Terminal::plural(std::uint64_t count, std::string_view noun) const {
  return fmt::format("{} {}{}", this->count(count), noun, count == 1 ? "" : "s");
}

std::string Terminal::number(double value, int digits) const {
  return interactive ? fmt::format("{:.{}g}", value, digits) : fmt::format("{}", value);
}

Terminal terminal_on(int descriptor, ColorMode mode) {
  Terminal terminal;
  terminal.interactive = isatty(descriptor) == 1;
  terminal.utf8 = !terminal.interactive || has_utf8_locale();
  terminal.colored = wants_color(terminal.interactive, mode);
  winsize size = {};
  if (terminal.interactive && ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    terminal.width = size.ws_col;
  return terminal;
}

std::size_t columns_of(std::string_view text) {
  std::size_t columns = 0;
  while (!text.empty()) {
    const Piece piece = next_piece(text);
    columns += piece.columns;
    text.remove_prefix(piece.bytes);
  }
  return columns;
}

std::string abbreviate(std::string_view text, std::size_t columns, std::string_view ellipsis) {
  if (columns_of(text) <= columns) return std::string(text);
  std::size_t end = 0;
  for (std::size_t used = columns_of(ellipsis); end < text.size();) {
    const Piece piece = next_piece(text.substr(end));
    used += piece.columns;
    if (used > columns) break;
    end += piece.bytes;
  }
  return std::string(text.substr(0, end)).append(ellipsis);
}

std::string in_ascii(std::string_view text) {
  std::string plain;
  while (!text.empty()) {
    const DecodedCharacter next = decode_utf8(text);
    const auto code = static_cast<unsigned>(next.code);
    if (next.size == 0)
      plain += '?';
    else if (next.size == 1)
      plain += text[0];
    else if (code < 0x10000)
      plain += fmt::format("\\u{:04x}", code);
    else
      plain += fmt::format("\\u{:04x}\\u{:04x}", 0xD7C0 + (code >> 10), 0xDC00 + (code & 0x3FF));
    text.remove_prefix(std::max<std::size_t>(next.size, 1));
  }
  return plain;
}

std::string prose_in_ascii(std::string_view text) {
  constexpr std::pair<std::string_view, std::string_view> kSigns[] = {{"…", "..."}, {"×", "x"}, {"→", "->"}, {"≈", "~"},
                                                                      {"‖", "||"},  {"·", "*"}, {"−", "-"}};
  std::string plain;
  while (!text.empty()) {
    const auto sign = std::ranges::find_if(kSigns, [&](const auto& each) { return text.starts_with(each.first); });
    const bool is_sign = sign != std::end(kSigns);
    const std::size_t size = is_sign ? sign->first.size() : std::max<std::size_t>(decode_utf8(text).size, 1);
    plain += is_sign ? std::string(sign->second) : in_ascii(text.substr(0, size));
    text.remove_prefix(size);
  }
  return plain;
}

std::string elided(std::string_view text, std::size_t columns, std::string_view ellipsis) {
  const std::size_t all = columns_of(text), sign = columns_of(ellipsis);
  if (all <= columns) return std::string(text);
  if (columns <= sign) return std::string(ellipsis.substr(0, ellipsis.size() * columns / sign));
  const std::size_t head = (columns - sign + 1) / 2, tail = columns - sign - head;
  std::string result, end;
  for (std::size_t before = 0; !text.empty();) {
    const Piece piece = next_piece(text);
    const bool is_head = before + piece.columns <= head;
    const bool is_tail = piece.columns == 0 || all - before <= tail;
    if (is_head || is_tail) (is_head ? result : end) += text.substr(0, piece.bytes);
    before += piece.columns;
    text.remove_prefix(piece.bytes);
  }
  return result.append(ellipsis).append(end);
}

}  // namespace ballast::cli
