#include "kernels/bf16_distance.hpp"

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <bit>
#include <cmath>
#include <random>
#include <vector>

namespace ballast::kernels {
namespace {

using Halves = std::vector<bfloat16>;

bfloat16 half(float value) { return {static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16)}; }

Halves some_halves(unsigned seed, float scale = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, scale);
  Halves values;
  for (std::size_t i = 0; i < kBf16DistanceBlock; ++i) values.push_back(half(normal(random)));
  return values;
}

std::vector<std::uint64_t> bits_of(const BlockDistance& distance) {
  std::vector<std::uint64_t> bits;
  for (const double number : {distance.sums.squares_a, distance.sums.squares_b, distance.sums.products,
                              distance.sums.squares, distance.max_rel})
    bits.push_back(std::bit_cast<std::uint64_t>(number));
  return bits;
}

constexpr double kFar = 1e30;  // no block has a larger distance

TEST(Bf16Distance, HasTheSameBitsOnEveryTarget) {
  const Halves a = some_halves(1), b = some_halves(2);
  BlockDistance expected{.sums = {}, .max_abs = kFar};
  ASSERT_TRUE(measure_bf16(expected, a.data(), b.data()));
  double squares = 0, expected_squares = 0;
  ASSERT_TRUE(square_bf16(expected_squares, a.data()));
  for (std::int64_t targets = hwy::SupportedTargets(); targets != 0; targets &= targets - 1) {
    hwy::SetSupportedTargetsForTest(targets & -targets);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    BlockDistance found{.sums = {}, .max_abs = kFar};
    EXPECT_TRUE(measure_bf16(found, a.data(), b.data()));
    EXPECT_EQ(bits_of(found), bits_of(expected)) << hwy::TargetName(targets & -targets);
    EXPECT_TRUE(square_bf16(squares, a.data()));
    EXPECT_EQ(squares, expected_squares) << hwy::TargetName(targets & -targets);
    hwy::SetSupportedTargetsForTest(0);
  }
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

TEST(Bf16Distance, AgreesWithDoublesToSevenDigits) {
  const Halves a = some_halves(1), b = some_halves(2);
  BlockDistance found{.sums = {}, .max_abs = kFar}, expected;
  ASSERT_TRUE(measure_bf16(found, a.data(), b.data()));
  measure(expected, a.data(), b.data(), a.size(), {});
  double squares = 0;
  EXPECT_TRUE(square_bf16(squares, a.data()));
  EXPECT_NEAR(squares / expected.sums.squares_a, 1, 1e-7);
  EXPECT_NEAR(found.sums.squares_a / expected.sums.squares_a, 1, 1e-7);
  EXPECT_NEAR(found.sums.squares_b / expected.sums.squares_b, 1, 1e-7);
  EXPECT_NEAR(found.sums.squares / expected.sums.squares, 1, 1e-7);
  EXPECT_NEAR(found.sums.products, expected.sums.products, 1e-7 * expected.sums.squares_a);
  EXPECT_EQ(found.max_rel, expected.max_rel);
}

TEST(Bf16Distance, SquaresBlocksThatAreInRange) {
  const auto square = [](Halves values, std::size_t at, float value) {
    values[at] = half(value);
    double squares = 0;
    return square_bf16(squares, values.data()) ? squares : -1;
  };
  EXPECT_EQ(square(Halves(kBf16DistanceBlock, half(2)), 1023, 3), 4 * 1023 + 9);
  EXPECT_EQ(square(Halves(kBf16DistanceBlock, half(0)), 0, -0.0F), 0);
  for (const float out_of_range : {NAN, INFINITY, 0x1p60F})
    EXPECT_EQ(square(some_halves(1), 777, out_of_range), -1) << out_of_range;
  EXPECT_EQ(square(some_halves(1, 0x1p-60F), 0, 0), -1);
}

TEST(Bf16Distance, FindsTheLargestRatioWhereverItIs) {
  for (const std::size_t at : {0U, 1U, 31U, 32U, 517U, 1023U}) {
    const Halves a(kBf16DistanceBlock, half(1.0F));
    Halves b = a;
    b[at] = half(0.75F);
    BlockDistance found{.sums = {}, .max_abs = kFar};
    ASSERT_TRUE(measure_bf16(found, a.data(), b.data()));
    EXPECT_EQ(found.max_rel, 0.25) << at;
  }
}

TEST(Bf16Distance, LeavesABlockToDoublesIfItHasANewMaximumOrIsOutOfRange) {
  const Halves a = some_halves(1);
  const auto takes = [&](float value, double max_abs, float scale = 1) {
    Halves left = some_halves(1, scale), right = left;
    right[777] = half(value);
    BlockDistance distance{.sums = {}, .max_abs = max_abs};
    return measure_bf16(distance, left.data(), right.data());
  };
  EXPECT_TRUE(takes(0.5F, kFar));
  EXPECT_FALSE(takes(100, 1));
  EXPECT_FALSE(takes(NAN, kFar));
  EXPECT_FALSE(takes(-INFINITY, kFar));
  EXPECT_FALSE(takes(0x1p60F, 1e38));
  EXPECT_FALSE(takes(0, kFar, 0x1p-60F));
}

}  // namespace
}  // namespace ballast::kernels
