#include "strip_chart.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

namespace ballast::cli {
namespace {

constexpr std::string_view kBars[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr std::string_view kCharacters[] = {" ", ".", ":", "-", "=", "+", "*", "#", "%", "@"};

// The largest of each `group` neighbours; a value that is not known only if none of them is.
std::vector<std::optional<double>> grouped(std::span<const std::optional<double>> values, std::size_t group) {
  std::vector<std::optional<double>> groups;
  for (std::size_t i = 0; i < values.size(); i += group) {
    const auto part = values.subspan(i, std::min(group, values.size() - i));
    groups.push_back(*std::max_element(part.begin(), part.end()));
  }
  return groups;
}

// A value above 0 is always visible.
std::string_view mark(std::span<const std::string_view> marks, std::optional<double> value, double largest) {
  if (!value) return "?";
  if (std::isinf(*value)) return "!";
  if (!(*value > 0)) return marks[0];
  const auto top = static_cast<double>(marks.size() - 1);
  return marks[static_cast<std::size_t>(std::clamp(std::round(*value / largest * top), 1.0, top))];
}

}  // namespace

std::string strip_chart(const Terminal& screen, std::span<const std::optional<double>> values, std::size_t columns) {
  const bool is_cut = screen.interactive && values.size() > std::max<std::size_t>(columns, 1);
  const auto shown = grouped(values, is_cut ? (values.size() + columns - 1) / columns : 1);
  double largest = 0;
  for (const auto& value : shown) {
    if (value && std::isfinite(*value)) largest = std::max(largest, *value);
  }
  const bool has_bars = screen.interactive && screen.utf8;
  const auto marks =
      has_bars ? std::span<const std::string_view>(kBars) : std::span<const std::string_view>(kCharacters);
  std::string text;
  for (const auto& value : shown) text += mark(marks, value, largest);
  return text;
}

}  // namespace ballast::cli
