#include "histogram.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace ballast::cli {
namespace {

// A column of a chart, by how many eighths of it are filled, and the lines beside and below.
struct Signs {
  std::string_view eighths[9];
  std::string_view side, corner, floor;
};
constexpr Signs kBlocks = {{" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"}, "│", "└", "─"};
constexpr Signs kAscii = {{" ", ".", ".", ":", ":", "-", "=", "+", "#"}, "|", "+", "-"};

const Signs& signs_of(const Terminal& screen) { return screen.utf8 ? kBlocks : kAscii; }

std::uint64_t largest_of(std::span<const std::uint64_t> counts) {
  return counts.empty() ? 0 : *std::max_element(counts.begin(), counts.end());
}

// The height in eighths of a row; a count above 0 is always visible.
std::size_t height(std::uint64_t count, std::uint64_t largest, std::size_t rows) {
  if (count == 0) return 0;
  const double share = static_cast<double>(count) / static_cast<double>(largest);
  return std::max<std::size_t>(1, static_cast<std::size_t>(std::lround(share * static_cast<double>(rows * 8))));
}

std::string axis_labels(const Terminal& screen, double min, double max, std::size_t columns) {
  const std::string left = screen.number(min), right = screen.number(max);
  if (left.size() + right.size() + 1 > columns) return fmt::format("{} {} {}", left, screen.ellipsis(), right);
  return left + std::string(columns - left.size() - right.size(), ' ') + right;
}

}  // namespace

std::string sparkline(const Terminal& screen, std::span<const std::uint64_t> counts) {
  const std::uint64_t largest = largest_of(counts);
  std::string text;
  for (const std::uint64_t count : counts) text += signs_of(screen).eighths[height(count, largest, 1)];
  return text;
}

std::size_t chart_margin(const Terminal& screen, std::uint64_t largest) {
  return columns_of(screen.count(largest)) + 2;
}

std::string chart(const Terminal& screen, std::span<const std::uint64_t> counts, const ChartOptions& options) {
  const Signs& signs = signs_of(screen);
  const std::uint64_t largest = largest_of(counts);
  const std::size_t label = chart_margin(screen, largest) - 2;
  const std::size_t bin_columns = std::max<std::size_t>(1, options.columns / std::max<std::size_t>(1, counts.size()));
  std::string text;
  for (std::size_t row = options.rows; row-- > 0;) {
    const std::string count = row + 1 == options.rows ? screen.count(largest) : "";
    std::string line = fmt::format("{:>{}} {}", count, label, signs.side);
    for (const std::uint64_t c : counts) {
      const std::size_t above = height(c, largest, options.rows);
      const std::string_view block = signs.eighths[above <= row * 8 ? 0 : std::min<std::size_t>(above - row * 8, 8)];
      for (std::size_t i = 0; i < bin_columns; ++i) line += block;
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  std::string axis = fmt::format("{:>{}} {}", 0, label, signs.corner);
  for (std::size_t i = 0; i < counts.size() * bin_columns; ++i) axis += signs.floor;
  text += axis + "\n";
  return text + std::string(label + 2, ' ') +
         axis_labels(screen, options.min, options.max, counts.size() * bin_columns) + "\n";
}

}  // namespace ballast::cli
