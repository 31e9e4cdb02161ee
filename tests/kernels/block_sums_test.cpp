#include "kernels/block_sums.hpp"

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <bit>
#include <cmath>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include "kernels/bf16_sums.hpp"
#include "kernels/constant_rows.hpp"

namespace ballast::kernels {
namespace {

std::vector<float> some_numbers(std::size_t count) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal(0.3F, 2);
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

// Sums, extremes and zeros as bits.
std::vector<std::uint64_t> bits_of(const BlockSums& sums) {
  std::vector<std::uint64_t> bits = {sums.zeros};
  for (const double number : {sums.sum, sums.squares, sums.magnitudes, sums.min, sums.max})
    bits.push_back(std::bit_cast<std::uint64_t>(number));
  return bits;
}

TEST(BlockSums, HaveTheSameBitsOnEveryTarget) {
  for (const std::size_t count : {1U, 15U, 16U, 17U, 1000U, 1024U}) {
    std::vector<float> values = some_numbers(count);
    values[count / 2] = -0.0F;
    const std::vector<double> wide(values.begin(), values.end());
    const auto expected = bits_of(block_sums(values.data(), count));
    EXPECT_EQ(bits_of(block_sums(wide.data(), count)), expected);
    for (std::int64_t targets = hwy::SupportedTargets(); targets != 0; targets &= targets - 1) {
      hwy::SetSupportedTargetsForTest(targets & -targets);
      hwy::GetChosenTarget().Update(hwy::SupportedTargets());
      EXPECT_EQ(bits_of(block_sums(values.data(), count)), expected) << hwy::TargetName(targets & -targets);
      EXPECT_EQ(bits_of(block_sums(wide.data(), count)), expected) << hwy::TargetName(targets & -targets);
      hwy::SetSupportedTargetsForTest(0);
    }
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
}

TEST(BlockSums, AreNotFiniteIfAValueIsNot) {
  for (const float wrong : {NAN, INFINITY, -INFINITY}) {
    for (const std::size_t at : {0U, 5U, 31U, 33U}) {
      std::vector<float> values = some_numbers(34);
      values[at] = wrong;
      EXPECT_FALSE(std::isfinite(block_sums(values.data(), values.size()).sum));
    }
  }
}

std::vector<std::uint16_t> bf16_codes(const std::vector<float>& values) {
  std::vector<std::uint16_t> codes;
  for (const float value : values)
    codes.push_back(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16));
  return codes;
}

std::optional<BlockSums> bf16_sums_of(const std::vector<std::uint16_t>& codes) {
  return bf16_sums(std::as_bytes(std::span(codes)).data());
}

TEST(Bf16Sums, AgreeWithThoseOfDoublesToSevenDigits) {
  const auto codes = bf16_codes(some_numbers(kBf16Block));
  double sum = 0, squares = 0, magnitudes = 0;
  for (const std::uint16_t code : codes) {
    const double value = std::bit_cast<float>(std::uint32_t{code} << 16);
    sum += value;
    squares += value * value;
    magnitudes += std::fabs(value);
  }
  const auto sums = bf16_sums_of(codes);
  ASSERT_TRUE(sums);
  EXPECT_NEAR(sums->sum / sum, 1, 1e-7);
  EXPECT_NEAR(sums->squares / squares, 1, 1e-7);
  EXPECT_NEAR(sums->magnitudes / magnitudes, 1, 1e-7);
}

TEST(Bf16Sums, HaveTheSameBitsOnEveryTarget) {
  auto codes = bf16_codes(some_numbers(kBf16Block));
  codes[5] = 0;
  codes[kBf16Block - 1] = 0x8000;
  const auto expected = bits_of(*bf16_sums_of(codes));
  EXPECT_EQ(expected[0], 2u);
  for (std::int64_t targets = hwy::SupportedTargets(); targets != 0; targets &= targets - 1) {
    hwy::SetSupportedTargetsForTest(targets & -targets);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    EXPECT_EQ(bits_of(*bf16_sums_of(codes)), expected) << hwy::TargetName(targets & -targets);
    hwy::SetSupportedTargetsForTest(0);
  }
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

TEST(Bf16Sums, AreLeftToDoublesIfDigitsWouldBeLost) {
  const auto numbers = some_numbers(kBf16Block);
  const auto with = [&](float value, float scale, float shift) {
    auto values = numbers;
    for (float& number : values) number = number * scale + shift;
    values[777] = value;
    return bf16_sums_of(bf16_codes(values)).has_value();
  };
  EXPECT_TRUE(with(1, 1, 0));
  EXPECT_TRUE(with(0, 0, 0));
  EXPECT_FALSE(with(NAN, 1, 0));
  EXPECT_FALSE(with(-INFINITY, 1, 0));
  EXPECT_FALSE(with(0x1p61F, 1, 0));
  EXPECT_FALSE(with(0, 0x1p-80F, 0));
  EXPECT_FALSE(with(1, 1, 100));
}

TEST(ConstantRows, OfBf16AreThoseOfItsValues) {
  const auto codes = bf16_codes({2, 2, 0, -0.0F, 1, 2, NAN, NAN});
  ConstantRows rows(2, 0);
  rows.add_bf16(std::as_bytes(std::span(codes)).data(), codes.size());
  EXPECT_EQ(rows.count(), 2u);
  EXPECT_EQ(rows.zero_count(), 1u);
}

// Rows of three in every way that two cuts can cut them.
TEST(ConstantRows, AreTheSameHoweverTheMatrixIsCut) {
  const std::vector<float> values = {1, 1, 1, 1, 2, 1, 0, 0, -0.0F, 3, 3, 3, 2, 3, 3, NAN, NAN, NAN, 5, 5, 5};
  for (std::size_t a = 0; a <= values.size(); ++a) {
    for (std::size_t b = a; b <= values.size(); ++b) {
      ConstantRows all(3, 0), middle(3, a), last(3, b);
      all.add(values.data(), a);
      middle.add(values.data() + a, b - a);
      last.add(values.data() + b, values.size() - b);
      all.merge(middle);
      all.merge(last);
      EXPECT_EQ(all.count(), 4u) << a << " " << b;
      EXPECT_EQ(all.zero_count(), 1u);
      EXPECT_EQ(all.first_row(), 0u);
      EXPECT_EQ(all.first_value(), 1);
    }
  }
}

TEST(ConstantRows, OfOneLongRowAreMergedFromTheRight) {
  const std::vector<float> values(10, 4);
  ConstantRows first(10, 0), second(10, 3), third(10, 6);
  first.add(values.data(), 3);
  second.add(values.data(), 3);
  third.add(values.data(), 4);
  second.merge(third);
  first.merge(second);
  EXPECT_EQ(first.count(), 1u);
}

}  // namespace
}  // namespace ballast::kernels
