// Histograms drawn with block characters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "terminal.hpp"

namespace ballast::cli {

// "▁▃█▅▁": one line, one column a bin.
std::string sparkline(const Terminal& screen, std::span<const std::uint64_t> counts);

struct ChartOptions {
  std::size_t rows = 8;
  std::size_t columns = 72;  // for the bars; each bin gets the same number of columns, at least one
  double min = 0, max = 0;   // the ends of the axis
};

// Several lines with axes; each line is chart_margin() wider than the bars.
std::string chart(const Terminal& screen, std::span<const std::uint64_t> counts, const ChartOptions& options);

// How many columns left of the bars are needed for counts up to `largest`.
std::size_t chart_margin(const Terminal& screen, std::uint64_t largest);

}  // namespace ballast::cli
