// FP8, NF4 and MXFP4, compared with plain loops that look for the nearest code, on every instruction set.
#include "kernels/quantize.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <hwy/targets.h>

namespace ballast::kernels {
namespace {

using Bytes = std::vector<std::byte>;
using Floats = std::vector<float>;

// Numbers of many sizes, with zeros and small integers among them, so that ties occur.
Floats some_values(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  Floats values(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto kind = random() % 8;
    const float spread = std::ldexp(1.0F, static_cast<int>(i / 64 % 40) - 20);
    if (kind == 0) values[i] = 0;
    if (kind == 1) values[i] = std::ldexp(static_cast<float>(static_cast<int>(random() % 33) - 16), -2) * spread;
    if (kind > 1) values[i] = std::normal_distribution<float>(0, spread)(random);
  }
  return values;
}

float e4m3_value(unsigned code) {
  const unsigned exponent = code >> 3 & 15, mantissa = code & 7;
  const float magnitude = exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -9)
                                        : std::ldexp(static_cast<float>(8 + mantissa), static_cast<int>(exponent) - 10);
  return (code & 128) != 0 ? -magnitude : magnitude;
}

// The nearest of the codes; of two that are as near, the even one.
unsigned nearest_magnitude(double value, unsigned codes, float (*value_of)(unsigned)) {
  unsigned best = 0;
  for (unsigned code = 1; code < codes; ++code) {
    const double before = std::abs(static_cast<double>(value_of(best)) - std::abs(value));
    const double now = std::abs(static_cast<double>(value_of(code)) - std::abs(value));
    if (now < before || (now == before && code % 2 == 0)) best = code;
  }
  return best;
}

float e2m1_value(unsigned code) {
  constexpr float kValues[] = {0, 0.5F, 1, 1.5F, 2, 3, 4, 6};
  return (code & 8) != 0 ? -kValues[code & 7] : kValues[code & 7];
}

class QuantizeOnTarget : public testing::TestWithParam<std::int64_t> {
 protected:
  void SetUp() override { hwy::SetSupportedTargetsForTest(GetParam()); }
  void TearDown() override { hwy::SetSupportedTargetsForTest(0); }
};

INSTANTIATE_TEST_SUITE_P(Highway, QuantizeOnTarget, testing::ValuesIn(hwy::SupportedAndGeneratedTargets()),
                         [](const auto& target) { return std::string(hwy::TargetName(target.param)); });

TEST_P(QuantizeOnTarget, FindsTheLargestMagnitude) {
  for (const std::size_t count : {0U, 1U, 3U, 17U, 64U, 131U}) {
    const Floats values = some_values(count, 1);
    float largest = 0;
    for (const float value : values) largest = std::max(largest, std::abs(value));
    EXPECT_EQ(largest_magnitude(values), largest) << count;
  }
  Floats values = some_values(100, 2);
  for (const std::size_t place : {0U, 42U, 99U}) {
    for (const float odd : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::quiet_NaN()}) {
      Floats some = values;
      some[place] = odd;
      EXPECT_FALSE(std::isfinite(largest_magnitude(some))) << place << ", " << odd;
    }
  }
}

TEST_P(QuantizeOnTarget, RoundsToTheNearestE4m3) {
  for (const std::size_t count : {1U, 5U, 128U, 1000U}) {
    const Floats values = some_values(count, 3);
    const float factor = fp8_factor(largest_magnitude(values));
    Bytes codes(count);
    to_fp8(values, factor, codes);
    for (std::size_t i = 0; i < count; ++i) {
      const float scaled = values[i] * factor;
      const unsigned expected =
          nearest_magnitude(static_cast<double>(scaled), 0x7F, e4m3_value) | (std::signbit(scaled) ? 128U : 0U);
      ASSERT_EQ(std::to_integer<unsigned>(codes[i]), expected) << values[i] << " of " << count;
    }
  }
}

TEST_P(QuantizeOnTarget, RoundsToTheNearestNf4) {
  const Floats values = some_values(64 * kNf4Block, 4);
  Bytes codes(values.size() / 2);
  Floats scales(values.size() / kNf4Block);
  to_nf4(values, codes);
  nf4_scales(values, scales);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto byte = std::to_integer<unsigned>(codes[i / 2]);
    const unsigned code = i % 2 == 0 ? byte >> 4 : byte & 15;
    const float scale = scales[i / kNf4Block], scaled = values[i] * (1 / scale);
    ASSERT_EQ(scale, largest_magnitude(std::span(values).subspan(i / kNf4Block * kNf4Block, kNf4Block)));
    // A code whose neighbours are not nearer, but for the last bit of their middle.
    const auto distance = [&](unsigned other) {
      return std::abs(static_cast<double>(kNf4Values[other]) - static_cast<double>(scaled));
    };
    const double close = distance(code) * (1 - 1e-6);
    ASSERT_TRUE(code == 0 || close <= distance(code - 1)) << values[i];
    ASSERT_TRUE(code == 15 || close <= distance(code + 1)) << values[i];
  }
}

// bitsandbytes multiplies the zeros by infinity, and takes the lowest code for the NaN.
TEST_P(QuantizeOnTarget, GivesZerosTheLowestCodeOfNf4) {
  const Floats values(kNf4Block, 0.0F);
  Bytes codes(kNf4Block / 2, std::byte{7});
  Floats scales(1, 7.0F);
  to_nf4(values, codes);
  nf4_scales(values, scales);
  EXPECT_EQ(codes, Bytes(kNf4Block / 2));
  EXPECT_EQ(scales[0], 0);
}

TEST_P(QuantizeOnTarget, RoundsToTheNearestE2m1) {
  Floats values = some_values(128 * kMxfp4Block, 5);
  for (std::size_t i = 0; i < kMxfp4Block; ++i) values[i] = std::numeric_limits<float>::max();
  for (std::size_t i = 0; i < kMxfp4Block; ++i)  // subnormal
    values[kMxfp4Block + i] = std::bit_cast<float>(static_cast<std::uint32_t>(i << 12));
  for (std::size_t i = 0; i < kMxfp4Block; ++i) values[2 * kMxfp4Block + i] = -0.0F;
  Bytes codes(values.size() / 2), scales(values.size() / kMxfp4Block);
  to_mxfp4(values, codes);
  mxfp4_scales(values, scales);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t block = i / kMxfp4Block;
    const float largest = largest_magnitude(std::span(values).subspan(block * kMxfp4Block, kMxfp4Block));
    const int scale = std::to_integer<int>(scales[block]);
    const double unit = std::ldexp(1.0, scale - 127), most = static_cast<double>(largest) / unit;
    ASSERT_LT(most, scale == 252 ? 8 : 7);
    ASSERT_TRUE(most >= 3.5 || scale == 0) << largest;
    const auto byte = std::to_integer<unsigned>(codes[i / 2]);
    const unsigned expected =
        nearest_magnitude(static_cast<double>(values[i]) / unit, 8, e2m1_value) | (std::signbit(values[i]) ? 8U : 0U);
    ASSERT_EQ(i % 2 == 0 ? byte & 15 : byte >> 4, expected) << values[i] << " with the exponent " << scale;
  }
}

// Whatever codes and exponents say comes back, although perhaps with another exponent.
TEST_P(QuantizeOnTarget, KeepsWhatMxfp4Holds) {
  std::mt19937 random(6);
  for (int scale = 2; scale <= 252; ++scale) {
    Floats values(kMxfp4Block);
    for (float& value : values) value = std::ldexp(e2m1_value(random() % 16), scale - 127);
    Bytes codes(values.size() / 2), scales(1);
    to_mxfp4(values, codes);
    mxfp4_scales(values, scales);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto byte = std::to_integer<unsigned>(codes[i / 2]);
      const float back =
          std::ldexp(e2m1_value(i % 2 == 0 ? byte & 15 : byte >> 4), std::to_integer<int>(scales[0]) - 127);
      ASSERT_EQ(std::bit_cast<std::uint32_t>(back), std::bit_cast<std::uint32_t>(values[i])) << scale;
    }
  }
}

TEST(Quantize, MakesTheLargestMagnitudeTheLargestE4m3) {
  EXPECT_EQ(fp8_factor(448), 1);
  EXPECT_EQ(fp8_factor(1), 448);
  EXPECT_EQ(fp8_factor(0), 1);
  EXPECT_EQ(fp8_factor(std::numeric_limits<float>::denorm_min()), 0x1p126F);
  EXPECT_TRUE(std::isnormal(1 / fp8_factor(std::numeric_limits<float>::denorm_min())));
  EXPECT_TRUE(std::isnormal(fp8_factor(std::numeric_limits<float>::max())));
}

}  // namespace
}  // namespace ballast::kernels
