#include <ballast/shape.hpp>

#include <limits>
#include <utility>

#include <gtest/gtest.h>

namespace ballast {
namespace {

const Shape kScalar;
const Shape kShort{2, 3};
const Shape kInline{1, 2, 3, 4};
const Shape kLong{1, 2, 3, 4, 5};
const Shape kLonger{6, 5, 4, 3, 2, 1};

TEST(Shape, HoldsItsDimensionsInlineAndOnTheHeap) {
  for (const Shape* shape : {&kScalar, &kShort, &kInline, &kLong, &kLonger}) {
    const Shape copy(*shape);
    EXPECT_EQ(copy, *shape);
    EXPECT_EQ(copy.rank(), static_cast<std::size_t>(copy.end() - copy.begin()));
  }
  EXPECT_EQ(kLong[4], 5u);
  EXPECT_EQ(kShort.dims().size(), 2u);
  EXPECT_TRUE(kScalar.empty());
}

TEST(Shape, AssignsAndMovesBetweenEveryPairOfLengths) {
  const Shape* all[] = {&kScalar, &kShort, &kInline, &kLong, &kLonger};
  for (const Shape* from : all) {
    for (const Shape* to : all) {
      Shape a(*from), b(*to);
      b = a;
      EXPECT_EQ(b, *from);
      EXPECT_EQ(a, *from);

      Shape c(*to);
      c = std::move(a);
      EXPECT_EQ(c, *from);

      const Shape d(std::move(c));
      EXPECT_EQ(d, *from);
      EXPECT_EQ(c.rank(), 0u);  // NOLINT(bugprone-use-after-move): a moved-from shape is a scalar's
    }
  }
}

TEST(Shape, SurvivesAssignmentToItself) {
  for (const Shape* shape : {&kShort, &kLong}) {
    Shape s(*shape);
    const Shape& same = s;
    s = same;
    EXPECT_EQ(s, *shape);
  }
}

TEST(Shape, DiffersByLengthAndByDimension) {
  EXPECT_FALSE(kShort == kScalar);
  EXPECT_FALSE(kShort == (Shape{3, 2}));
  EXPECT_FALSE(kShort == (Shape{2, 3, 1}));
}

TEST(Shape, CountsItsElements) {
  EXPECT_EQ(kScalar.numel(), 1u);
  EXPECT_EQ(kShort.numel(), 6u);
  EXPECT_EQ(kLonger.numel(), 720u);
  EXPECT_EQ((Shape{5, 0, 7}).numel(), 0u);
}

TEST(Shape, HasNoCountIfItOverflows) {
  constexpr std::uint64_t kHalf = std::uint64_t{1} << 32;
  EXPECT_EQ((Shape{kHalf, kHalf}).numel(), std::nullopt);
  EXPECT_EQ((Shape{kHalf, kHalf - 1}).numel(), kHalf * (kHalf - 1));
  // Multiplied in order, as safetensors does: what safetensors refuses is refused here too.
  EXPECT_EQ((Shape{0, kHalf, kHalf}).numel(), 0u);
  EXPECT_EQ((Shape{kHalf, kHalf, 0}).numel(), std::nullopt);
}

TEST(Shape, PrintsLikePython) {
  EXPECT_EQ(to_string(kScalar), "[]");
  EXPECT_EQ(to_string(kShort), "[2, 3]");
  EXPECT_EQ(to_string(Shape{std::numeric_limits<std::uint64_t>::max()}), "[18446744073709551615]");
}

TEST(Shape, HasRowMajorStrides) {
  EXPECT_EQ(contiguous_strides(kScalar), Strides{});
  EXPECT_EQ(contiguous_strides(kInline), (Strides{24, 12, 4, 1}));
  EXPECT_EQ(contiguous_strides(Shape{2, 0, 3}), (Strides{3, 3, 1}));
}

}  // namespace
}  // namespace ballast
