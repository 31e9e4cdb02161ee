// Slices as Python writes them: integers, negative integers, ranges with steps, and "...". Slices are plain values.
// parse_slice() may be called from several threads at once.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace ballast {

struct SliceIndex {
  enum class Kind : std::uint8_t { at, range, ellipsis };

  static SliceIndex at(std::int64_t i) { return {Kind::at, i, {}, 1}; }
  static SliceIndex range(std::optional<std::int64_t> start, std::optional<std::int64_t> stop, std::int64_t step = 1) {
    return {Kind::range, start, stop, step};
  }
  static SliceIndex ellipsis() { return {Kind::ellipsis, {}, {}, 1}; }

  Kind kind;
  std::optional<std::int64_t> start;  // for `at`, the index
  std::optional<std::int64_t> stop;
  std::int64_t step;  // negative walks backwards; never 0
};

using Slice = std::vector<SliceIndex>;

// Parses "0:4, ..., -1, ::2"; brackets around it are allowed. Throws Errc::invalid_argument.
Slice parse_slice(std::string_view text);

}  // namespace ballast
