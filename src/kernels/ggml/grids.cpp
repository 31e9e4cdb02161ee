#include "kernels/ggml/grids.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "kernels/ggml/tables.hpp"

namespace ballast::kernels {
namespace {

// The squared distance of two codes is the sum of the squared distances of their halves, which are looked up.
class Distances {
 public:
  explicit Distances(unsigned levels)
      : bits_(levels == 3 ? 2 : 3), half_bits_(levels == 3 ? 8 : 6), table_(std::size_t{1} << 2 * half_bits_) {
    for (unsigned i = 0; i < table_.size(); ++i) table_[i] = between_halves(i >> half_bits_, i & half_mask());
  }

  unsigned operator()(unsigned a, unsigned b) const {
    const unsigned high = (a >> half_bits_) << half_bits_ | b >> half_bits_;
    const unsigned low = (a & half_mask()) << half_bits_ | (b & half_mask());
    return unsigned{table_[high]} + table_[low];
  }

 private:
  unsigned half_mask() const { return (1U << half_bits_) - 1; }

  std::uint8_t between_halves(unsigned a, unsigned b) const {
    unsigned sum = 0;
    for (unsigned shift = 0; shift < half_bits_; shift += bits_) {
      const unsigned mask = (1U << bits_) - 1, x = a >> shift & mask, y = b >> shift & mask;
      sum += (x - y) * (x - y);
    }
    return static_cast<std::uint8_t>(sum);
  }

  unsigned bits_, half_bits_;
  std::vector<std::uint8_t> table_;
};

// The rows at the few smallest distances from a code, sorted by counting.
class NearRows {
 public:
  NearRows(std::span<const std::uint16_t> rows, unsigned levels, int distances)
      : rows_(rows), distance_(levels), wanted_(distances), distances_(rows.size()) {}

  void append(unsigned code, std::vector<std::uint16_t>& lists) {
    std::array<std::size_t, kFarthest + 1> begins{};
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      distances_[i] = static_cast<std::uint8_t>(distance_(code, rows_[i]));
      ++begins[distances_[i]];
    }
    std::size_t count = 0, last = 0;
    for (int found = 0; found < wanted_ && last <= kFarthest; ++last) {
      found += begins[last] != 0 ? 1 : 0;
      count += std::exchange(begins[last], count);
    }
    const std::size_t first = lists.size();
    lists.resize(first + count);
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (distances_[i] < last) lists[first + begins[distances_[i]]++] = rows_[i];
    }
    while (lists.size() % 8 != 0) lists.push_back(std::uint16_t{lists.back()});
  }

 private:
  static constexpr std::size_t kFarthest = 4 * 7 * 7;  // of four elements with eight levels

  std::span<const std::uint16_t> rows_;
  Distances distance_;
  int wanted_;
  std::vector<std::uint8_t> distances_;
};

// Two bits of a code of three levels are never both set.
bool is_code(unsigned code, unsigned levels) { return levels != 3 || (code & code >> 1 & 0x5555) == 0; }

template <DType kType, unsigned kLevels, int kDistances>
const Grid& grid() {
  static const Grid grid(grid_codes(kType), kLevels, kDistances);
  return grid;
}

}  // namespace

Grid::Grid(std::span<const std::uint16_t> rows, unsigned levels, int distances)
    : entries_(levels == 3 ? 0xAAAB : 0x1000, 0xFFFF'FFFF) {
  for (unsigned i = 0; i < rows.size(); ++i) entries_[rows[i]] = i << 8;
  NearRows near_rows(rows, levels, distances);
  for (unsigned code = 0; code < entries_.size(); ++code) {
    if (entries_[code] != 0xFFFF'FFFF || !is_code(code, levels)) continue;
    const std::size_t first = lists_.size();
    near_rows.append(code, lists_);
    entries_[code] = static_cast<std::uint32_t>(first / 8 << 8 | (lists_.size() - first) / 8);
  }
}

const Grid& grid_of(DType type) {
  switch (type) {
    case DType::iq2_xxs: return grid<DType::iq2_xxs, 3, 2>();
    case DType::iq2_xs: return grid<DType::iq2_xs, 3, 2>();
    case DType::iq2_s: return grid<DType::iq2_s, 3, 1>();
    case DType::iq3_xxs: return grid<DType::iq3_xxs, 8, 2>();
    case DType::iq3_s: return grid<DType::iq3_s, 8, 3>();
    default: return grid<DType::iq1_s, 3, 3>();
  }
}

}  // namespace ballast::kernels
