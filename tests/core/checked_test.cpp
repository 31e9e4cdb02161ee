#include "core/checked.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "support/expect_error.hpp"

namespace ballast {
namespace {

constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();

static_assert(checked_add(1, 2) == 3u, "usable at compile time");

TEST(CheckedAdd, GivesNothingIfItWouldWrap) {
  EXPECT_EQ(checked_add(kMax, 0), kMax);
  EXPECT_EQ(checked_add(kMax, 1), std::nullopt);
}

TEST(CheckedMul, GivesNothingIfItWouldWrap) {
  EXPECT_EQ(checked_mul(kMax / 2, 2), kMax - 1);
  EXPECT_EQ(checked_mul(kMax, 0), 0u);
  EXPECT_EQ(checked_mul(0x4000000000000001, 4), std::nullopt);  // wraps to 4: PyTorch's pull request 181310
}

TEST(CheckedAlignUp, GivesNothingIfItWouldWrapOrMeansNothing) {
  EXPECT_EQ(checked_align_up(0, 8), 0u);
  EXPECT_EQ(checked_align_up(1, 8), 8u);
  EXPECT_EQ(checked_align_up(8, 8), 8u);
  EXPECT_EQ(checked_align_up(7, 1), 7u);
  EXPECT_EQ(checked_align_up(kMax - 6, 8), std::nullopt);
  EXPECT_EQ(checked_align_up(1, 0), std::nullopt);
  EXPECT_EQ(checked_align_up(1, 24), std::nullopt);
}

TEST(IsInside, DoesNotWrap) {
  EXPECT_TRUE(is_inside(0, 0, 0));
  EXPECT_TRUE(is_inside(10, 0, 10));
  EXPECT_TRUE(is_inside(2, 8, 10));
  EXPECT_FALSE(is_inside(3, 8, 10));
  EXPECT_FALSE(is_inside(kMax, 2, 10));
  EXPECT_FALSE(is_inside(2, kMax, 10));
}

TEST(Fits, SaysWhatDoesNot) {
  EXPECT_EQ(fits(checked_add(1, 1), "the size"), 2u);
  EXPECT_ERROR(fits(checked_add(kMax, 1), "the size of \"w\""), Errc::malformed,
               "the size of \"w\" does not fit 64 bits");
}

}  // namespace
}  // namespace ballast
