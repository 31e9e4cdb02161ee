#include "kernels/compare.hpp"

#include <cmath>
#include <complex>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

namespace ballast::kernels {
namespace {

template <class T>
Difference compare(DType dtype, const std::vector<T>& a, const std::vector<T>& b) {
  Difference d;
  accumulate(d, dtype, std::as_bytes(std::span(a)), std::as_bytes(std::span(b)));
  return d;
}

TEST(Compare, FindsNothingBetweenEqualBytes) {
  const std::vector<float> values(5000, NAN);
  const Difference d = compare(DType::f32, values, values);
  EXPECT_TRUE(d.equal());
  EXPECT_EQ(d.count, 5000u);
  EXPECT_EQ(d.first_different, std::nullopt);
  EXPECT_EQ(d.max_abs, 0);
}

TEST(Compare, ReportsHowManyDifferTheFirstPositionAndTheDistance) {
  std::vector<float> a(3000, 1), b(3000, 1);
  b[1500] = 1.5F;
  b[2999] = -1;
  const Difference d = compare(DType::f32, a, b);
  EXPECT_EQ(d.count, 3000u);
  EXPECT_EQ(d.different, 2u);
  EXPECT_EQ(d.first_different, 1500u);
  EXPECT_EQ(d.max_abs, 2);
  EXPECT_EQ(d.max_rel, 2);
}

TEST(Compare, SeesBitsThatDoNotChangeTheValue) {
  const Difference d = compare<float>(DType::f32, {0, NAN}, {-0.0F, -NAN});
  EXPECT_EQ(d.different, 2u);
  EXPECT_EQ(d.nan_mismatch, 0u);
  EXPECT_EQ(d.max_abs, 0);
  EXPECT_EQ(d.max_rel, 0);
}

TEST(Compare, CountsNanAgainstANumberSeparately) {
  const Difference d = compare<double>(DType::f64, {NAN, 1, 2}, {1, NAN, 2.5});
  EXPECT_EQ(d.different, 3u);
  EXPECT_EQ(d.nan_mismatch, 2u);
  EXPECT_EQ(d.max_abs, 0.5);
}

TEST(Compare, FindsAnInfiniteDistanceFromInfinity) {
  const Difference d = compare<double>(DType::f64, {INFINITY, INFINITY}, {1, INFINITY});
  EXPECT_EQ(d.different, 1u);
  EXPECT_EQ(d.max_abs, INFINITY);
  EXPECT_EQ(d.max_rel, INFINITY);
}

TEST(Compare, TakesTypesOfLessThanAByte) {
  const Difference f4 = compare<std::uint8_t>(DType::f4, {0x21, 0x43}, {0x21, 0x73});
  EXPECT_EQ(f4.count, 4u);
  EXPECT_EQ(f4.different, 1u);
  EXPECT_EQ(f4.first_different, 3u);
  EXPECT_EQ(f4.max_abs, 4);  // 2 and 6

  const Difference f6 = compare<std::uint8_t>(DType::f6_e3m2, {0, 0, 0}, {0, 0x10, 0x04});
  EXPECT_EQ(f6.count, 4u);
  EXPECT_EQ(f6.different, 2u);
  EXPECT_EQ(f6.first_different, 2u);

  const Difference q2 = compare<std::uint8_t>(DType::qu2x4, {0b00'01'10'11}, {0b11'01'10'00});
  EXPECT_EQ(q2.count, 4u);
  EXPECT_EQ(q2.different, 2u);
  EXPECT_EQ(q2.first_different, 0u);
}

TEST(Compare, TakesComplexNumbersByTheirParts) {
  using C = std::complex<float>;
  const Difference d = compare<C>(DType::c64, {C(1, 2), C(3, 4)}, {C(1, 2), C(3, 8)});
  EXPECT_EQ(d.count, 2u);
  EXPECT_EQ(d.different, 1u);
  EXPECT_EQ(d.first_different, 1u);
  EXPECT_EQ(d.max_abs, 4);
}

TEST(Compare, TakesQuantizedIntegersAsIntegersAndBlocksAsBits) {
  EXPECT_EQ(compare<std::int8_t>(DType::qi8, {-128}, {127}).max_abs, 255);

  std::vector<std::uint8_t> a(18 * 100), b(a);
  b[18 * 70 + 5] = 1;
  const Difference d = compare(DType::q4_0, a, b);
  EXPECT_EQ(d.count, 100u);
  EXPECT_EQ(d.different, 1u);
  EXPECT_EQ(d.first_different, 70u);
  EXPECT_EQ(d.max_abs, 0);
}

TEST(Compare, MergesPartsInTheirOrder) {
  std::vector<std::int32_t> a(100), b(100);
  b[60] = 7;
  Difference whole =
      compare(DType::i32, std::vector(a.begin(), a.begin() + 50), std::vector(b.begin(), b.begin() + 50));
  whole.merge(compare(DType::i32, std::vector(a.begin() + 50, a.end()), std::vector(b.begin() + 50, b.end())));
  EXPECT_EQ(whole.count, 100u);
  EXPECT_EQ(whole.first_different, 60u);
  EXPECT_EQ(whole.max_abs, 7);
}

}  // namespace
}  // namespace ballast::kernels
