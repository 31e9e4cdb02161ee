#include "kernels/stats.hpp"

#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cast.hpp"

namespace ballast::kernels {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

template <class T>
std::span<const std::byte> bytes(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

template <class T>
Moments moments(DType dtype, const std::vector<T>& values) {
  Moments m;
  accumulate(m, dtype, bytes(values));
  return m;
}

TEST(Moments, OfNothingAreEmpty) {
  const Moments m = moments<float>(DType::f32, {});
  EXPECT_EQ(m.count, 0u);
  EXPECT_GT(m.min, m.max);
  EXPECT_EQ(m.variance(), 0);
}

TEST(Moments, OfAFewNumbersAreThoseComputedByHand) {
  const Moments m = moments<float>(DType::f32, {2, 4, 4, 4, 5, 5, 7, 9});
  EXPECT_EQ(m.count, 8u);
  EXPECT_EQ(m.mean, 5);
  EXPECT_EQ(m.variance(), 4);
  EXPECT_EQ(m.min, 2);
  EXPECT_EQ(m.max, 9);
}

TEST(Moments, CountWhatIsNotFiniteAndLeaveItOut) {
  const Moments m = moments<double>(DType::f64, {1, kNan, kInf, -kInf, 0, -0.0, 3, -kNan, 0});
  EXPECT_EQ(m.count, 9u);
  EXPECT_EQ(m.nan_count, 2u);
  EXPECT_EQ(m.inf_count, 2u);
  EXPECT_EQ(m.zero_count, 3u);
  EXPECT_EQ(m.finite_count(), 5u);
  EXPECT_EQ(m.min, 0);
  EXPECT_EQ(m.max, 3);
  EXPECT_DOUBLE_EQ(m.mean, 0.8);
}

TEST(Moments, OfNothingFiniteHaveNoRange) {
  const Moments m = moments<double>(DType::f64, std::vector<double>(1500, kNan));
  EXPECT_EQ(m.nan_count, 1500u);
  EXPECT_GT(m.min, m.max);
  EXPECT_EQ(m.mean, 0);
  EXPECT_EQ(m.m2, 0);
}

TEST(Moments, DoNotLoseTheVarianceBesideALargeMean) {
  std::vector<double> values(10'001);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 1e9 + static_cast<double>(i % 3);
  const Moments m = moments(DType::f64, values);
  EXPECT_NEAR(m.mean, 1e9 + 1, 1e-3);
  EXPECT_NEAR(m.variance(), 2.0 / 3, 1e-3);
}

TEST(Moments, SurviveSumsThatOverflow) {
  const double most = std::numeric_limits<double>::max();
  EXPECT_NEAR(moments<double>(DType::f64, std::vector<double>(3000, most)).mean / most, 1, 1e-12);
  std::vector<double> both(4096, most);
  std::fill(both.begin() + 2048, both.end(), -most);
  EXPECT_NEAR(moments(DType::f64, both).mean / most, 0, 1e-12);
  EXPECT_EQ(moments(DType::f64, both).variance(), kInf);
}

TEST(Moments, AgreeWithLongDoubleOnRandomNumbers) {
  std::mt19937 random(2);
  std::normal_distribution<float> normal(0.1F, 0.02F);
  for (const std::size_t count : {1U, 7U, 8U, 9U, 1023U, 1024U, 1025U, 100'000U}) {
    std::vector<float> values(count);
    for (auto& v : values) v = normal(random);
    long double mean = 0, m2 = 0;
    for (const float v : values) mean += v;
    mean /= static_cast<long double>(count);
    for (const float v : values) m2 += (v - mean) * (v - mean);
    const Moments m = moments(DType::f32, values);
    EXPECT_NEAR(m.mean, static_cast<double>(mean), 1e-15);
    EXPECT_NEAR(m.m2, static_cast<double>(m2), 1e-12 * static_cast<double>(m2) + 1e-30);
  }
}

TEST(Moments, MergeToTheResultOfOnePass) {
  std::vector<double> values(5000);
  std::iota(values.begin(), values.end(), -1234.5);
  const auto all = bytes(values);
  Moments parts;
  for (const auto part : {all.first(8), all.subspan(8, 8 * 2047), all.subspan(8 * 2048)}) {
    Moments m;
    accumulate(m, DType::f64, part);
    parts.merge(m);
  }
  parts.merge(Moments{});
  const Moments whole = moments(DType::f64, values);
  EXPECT_EQ(parts.count, whole.count);
  EXPECT_EQ(parts.min, whole.min);
  EXPECT_EQ(parts.max, whole.max);
  EXPECT_NEAR(parts.mean, whole.mean, 1e-9);
  EXPECT_NEAR(parts.m2 / whole.m2, 1, 1e-12);
}

TEST(Moments, TakeEveryTypeThatIsANumber) {
  EXPECT_EQ(moments<std::uint8_t>(DType::boolean, {0, 1, 1, 0}).mean, 0.5);
  EXPECT_EQ(moments<std::int8_t>(DType::i8, {-128, 127}).min, -128);
  EXPECT_EQ(moments<std::uint64_t>(DType::u64, {std::uint64_t{1} << 63}).max, 0x1p63);
  EXPECT_EQ(moments<std::uint8_t>(DType::f4, {0xF7}).max, 6);  // 6 and -6
  EXPECT_EQ(moments<std::uint8_t>(DType::f6_e2m3, {0xFF, 0xFF, 0xFF}).count, 4u);
  EXPECT_TRUE(has_stats(DType::f8_e8m0));
  EXPECT_FALSE(has_stats(DType::c64));
  EXPECT_FALSE(has_stats(DType::q4_0));
}

TEST(Histogram, CountsBothEndsAndNothingOutside) {
  std::vector<std::uint64_t> bins(4);
  const std::vector<float> values = {0, 0.5F, 1, 2, 3.99F, 4, 4.1F, -0.1F, NAN, INFINITY, -INFINITY};
  histogram(bins, 0, 4, DType::f32, bytes(values));
  EXPECT_EQ(bins, (std::vector<std::uint64_t>{2, 1, 1, 2}));
}

TEST(Histogram, PutsAConstantIntoTheFirstBin) {
  std::vector<std::uint64_t> bins(3);
  histogram(bins, 7, 7, DType::i32, bytes(std::vector<std::int32_t>{7, 7, 8}));
  EXPECT_EQ(bins, (std::vector<std::uint64_t>{2, 0, 0}));
}

TEST(Histogram, SpansTheWholeRangeOfDoubles) {
  const double most = std::numeric_limits<double>::max();
  std::vector<std::uint64_t> bins(2);
  histogram(bins, -most, most, DType::f64, bytes(std::vector<double>{-most, -most / 2, most / 2, most}));
  EXPECT_EQ(bins, (std::vector<std::uint64_t>{2, 2}));
}

TEST(Histogram, AddsToWhatIsThere) {
  std::vector<std::uint64_t> bins = {10};
  histogram(bins, 0, 1, DType::f64, bytes(std::vector<double>(3000, 0.5)));
  EXPECT_EQ(bins[0], 3010u);
}

}  // namespace
}  // namespace ballast::kernels
