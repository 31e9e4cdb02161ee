#include "terminal.hpp"

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <ballast/text.hpp>

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

bool begins_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

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
  terminal.colored = wants_color(terminal.interactive, mode);
  winsize size = {};
  if (terminal.interactive && ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    terminal.width = size.ws_col;
  return terminal;
}

std::size_t columns_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), begins_character));
}

std::string abbreviate(std::string_view text, std::size_t columns) {
  if (columns_of(text) <= columns) return std::string(text);
  std::size_t end = 0;
  for (std::size_t kept = 0; end < text.size(); ++end) {
    if (begins_character(text[end]) && ++kept >= columns) break;
  }
  return std::string(text.substr(0, end)) + "…";
}

}  // namespace ballast::cli
