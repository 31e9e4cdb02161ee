// What a stream can show: whether a person reads it, its width, its colours, and how it shows numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace ballast::cli {

enum class ColorMode : std::uint8_t { automatic, always, never };

enum class Color : std::uint8_t { plain, bold, dim, red, green, yellow, cyan };

struct Terminal {
  bool interactive = false;
  bool colored = false;
  bool utf8 = true;    // whether the user's language is written in UTF-8
  bool whole = false;  // nothing is cut to fit the width
  bool quiet = false;  // tables say nothing about themselves
  std::size_t width = 80;

  // The sign for what is left out, and a multiplication sign.
  std::string_view ellipsis() const { return utf8 ? "…" : "..."; }
  std::string_view times() const { return utf8 ? "×" : "x"; }

  // `text` between the escape sequences of `color`, or `text` alone if the stream has no colours.
  std::string paint(Color color, std::string_view text) const;

  // Numbers. A person gets "1.02 kB", "1.23 M" and four digits; a program, which reads a pipe or a file, gets every
  // digit.
  std::string bytes(std::uint64_t count) const;                          // a cell of a table: "1.02 kB", "1024"
  std::string bytes_in_words(std::uint64_t count) const;                 // "1.02 kB", "1024 bytes"
  std::string count(std::uint64_t count) const;                          // "11 008", "11008"
  std::string plural(std::uint64_t count, std::string_view noun) const;  // "11 008 tensors", "11008 tensors"
  std::string number(double value, int digits = 4) const;                // "0.3333", "0.3333333333333333"
};

// NO_COLOR and a dumb terminal turn colours off; an explicit ColorMode wins over both.
Terminal terminal_on(int descriptor, ColorMode mode);

// How many columns UTF-8 text takes on the screen. Escape sequences that colour it take none, wide characters two, and
// marks on other characters none. A byte that is not UTF-8 takes one.
std::size_t columns_of(std::string_view text);

// Every character that is not ASCII as its number, \u4e2d; one above U+FFFF as two of them, as JSON has it.
std::string in_ascii(std::string_view text);

// The same for prose, which has signs of ours: "...", "x", "->" and the like stand for these.
std::string prose_in_ascii(std::string_view text);

// The text; if it is wider than `columns`, its middle is left out. The beginning keeps as much as the end.
std::string elided(std::string_view text, std::size_t columns, std::string_view ellipsis);

// The text; if it is wider than `columns`, its end is left out.
std::string abbreviate(std::string_view text, std::size_t columns, std::string_view ellipsis = "…");

}  // namespace ballast::cli
