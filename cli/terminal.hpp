// What a stream can show: whether a person looks at it, how wide it is, and colours.
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
  std::size_t width = 80;

  // `text` between the escape sequences of `color`, or as it is.
  std::string paint(Color color, std::string_view text) const;
};

// NO_COLOR and a dumb terminal turn colours off; an explicit ColorMode wins over both.
Terminal terminal_on(int descriptor, ColorMode mode);

// Columns that UTF-8 text takes. Counts code points: wide and combining characters are rare in tensor names.
std::size_t columns_of(std::string_view text);

// The text, cut at the end with "…" where it is wider than `columns`.
std::string abbreviate(std::string_view text, std::size_t columns);

}  // namespace ballast::cli
