#include "kernels/ggml/grids.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "kernels/ggml/tables.hpp"

namespace ballast::kernels {
namespace {

struct Case {
  DType type;
  unsigned bits, levels, distances;
};
constexpr Case kCases[] = {{DType::iq2_xxs, 2, 3, 2}, {DType::iq2_xs, 2, 3, 2},  {DType::iq2_s, 2, 3, 1},
                           {DType::iq1_s, 2, 3, 3},   {DType::iq3_xxs, 3, 8, 2}, {DType::iq3_s, 3, 8, 3}};

unsigned distance(unsigned a, unsigned b, unsigned bits) {
  unsigned sum = 0;
  for (; a != 0 || b != 0; a >>= bits, b >>= bits) {
    const unsigned mask = (1U << bits) - 1, difference = (a & mask) - (b & mask);
    sum += difference * difference;
  }
  return sum;
}

// All rows sorted by distance and number, up to the wanted number of different distances.
std::vector<std::uint16_t> near_by_sorting(const Case& c, unsigned code) {
  const auto rows = grid_codes(c.type);
  std::vector<std::uint16_t> sorted(rows.begin(), rows.end());
  const auto to_code = [&](std::uint16_t row) { return distance(code, row, c.bits); };
  std::ranges::stable_sort(sorted, {}, to_code);
  unsigned found = 1;
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    if (to_code(sorted[i]) != to_code(sorted[i - 1]) && ++found > c.distances) {
      sorted.resize(i);
      break;
    }
  }
  return sorted;
}

bool has_levels(const Case& c, unsigned code) {
  for (; code != 0; code >>= c.bits) {
    if ((code & ((1U << c.bits) - 1)) >= c.levels) return false;
  }
  return true;
}

TEST(GgmlGrids, KnowTheirRowsByTheirLevels) {
  for (const Case& c : kCases) {
    const auto rows = grid_codes(c.type);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      ASSERT_TRUE(grid_of(c.type).has(rows[i])) << name(c.type);
      ASSERT_EQ(grid_of(c.type).index(rows[i]), i) << name(c.type);
    }
  }
}

TEST(GgmlGrids, FindTheNearestRowsInTheOrderOfSorting) {
  for (const Case& c : kCases) {
    const Grid& grid = grid_of(c.type);
    for (unsigned code = 0; code < (c.levels == 3 ? 0xAAABU : 0x1000U); code += c.levels == 3 ? 7 : 1) {
      if (!has_levels(c, code) || grid.has(code)) continue;
      const auto want = near_by_sorting(c, code);
      const auto got = grid.near(code);
      ASSERT_GE(got.size(), want.size());
      ASSERT_EQ(got.size() % 8, 0u);
      ASSERT_LT(got.size() - want.size(), 8u);
      ASSERT_TRUE(std::equal(want.begin(), want.end(), got.begin())) << name(c.type) << " " << code;
      for (std::size_t i = want.size(); i < got.size(); ++i) ASSERT_EQ(got[i], want.back());
    }
  }
}

TEST(GgmlGrids, AreTheSameForAllThreads) {
  std::vector<const Grid*> found(4);
  std::vector<std::jthread> threads;
  for (const Grid*& grid : found) threads.emplace_back([&grid] { grid = &grid_of(DType::iq1_m); });
  threads.clear();
  for (const Grid* grid : found) EXPECT_EQ(grid, &grid_of(DType::iq1_s));
}

}  // namespace
}  // namespace ballast::kernels
