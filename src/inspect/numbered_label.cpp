#include "inspect/numbered_label.hpp"

#include <charconv>

#include "inspect/prefix_tree.hpp"

namespace ballast {

std::optional<NumberedLabel> read_number(std::string_view label) {
  const std::size_t end = end_of_part(label);
  std::size_t begin = end;
  while (begin > 0 && label[begin - 1] >= '0' && label[begin - 1] <= '9') --begin;
  constexpr std::size_t kMostDigits = 18;  // as globs have it
  const bool is_plain = end - begin == 1 || (end - begin > 1 && end - begin <= kMostDigits && label[begin] != '0');
  if (!is_plain || (begin > 0 && label[begin - 1] != '_')) return std::nullopt;
  NumberedLabel read{label.substr(0, begin), label.substr(end)};
  std::from_chars(label.data() + begin, label.data() + end, read.number);
  return read;
}

}  // namespace ballast
