// Strip charts: one line, one column a value, for what changes with the depth of a model.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "terminal.hpp"

namespace ballast::cli {

// "▁▃█▅▁", or ".-@=." if the stream is no terminal or the locale has no UTF-8. Heights are shares of the largest value
// that is finite; 0 is a space, infinity an exclamation mark, and a value that is not known a question mark. If there
// are more values than columns, several neighbours share a column, which shows the largest of them; a pipe gets all.
std::string strip_chart(const Terminal& screen, std::span<const std::optional<double>> values, std::size_t columns);

}  // namespace ballast::cli
