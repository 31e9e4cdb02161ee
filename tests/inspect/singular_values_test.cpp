#include <ballast/singular_values.hpp>

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>
#include <ballast/error.hpp>

#include "support/expect_error.hpp"

namespace ballast {
namespace {

Tensor matrix(Shape shape, const std::vector<float>& values) {
  return Tensor::from_values<float>(DType::f32, std::move(shape), values);
}

TEST(SingularValues, AreThoseOfADiagonal) {
  const SingularValues found = singular_values(matrix({2, 3}, {3, 0, 0, 0, 4, 0}));
  EXPECT_TRUE(found.is_complete);
  EXPECT_EQ(found.count, 2u);
  ASSERT_EQ(found.values.size(), 2u);
  EXPECT_NEAR(found.values[0], 4, 1e-5);
  EXPECT_NEAR(found.values[1], 3, 1e-5);
  EXPECT_NEAR(found.stable_rank, 25.0 / 16, 1e-5);
  EXPECT_EQ(found.of_90, 2u);
}

TEST(SingularValues, AreTheSameLyingAndStanding) {
  std::vector<float> values;
  for (int i = 0; i < 24; ++i) values.push_back(static_cast<float>((i * 7) % 5) - 2);
  const Tensor tall = matrix({6, 4}, values);
  const SingularValues a = singular_values(tall), b = singular_values(tall.transpose());
  ASSERT_EQ(a.values.size(), b.values.size());
  for (std::size_t i = 0; i < a.values.size(); ++i) EXPECT_NEAR(a.values[i], b.values[i], 1e-5);
}

TEST(SingularValues, OfAProductOfTwoVectorsAreOne) {
  std::vector<float> values;
  for (int i = 0; i < 700; ++i) {
    for (int j = 0; j < 600; ++j) values.push_back(static_cast<float>(i % 7 - 3) * static_cast<float>(j % 5 - 2));
  }
  const SingularValues found = singular_values(matrix({700, 600}, values));
  EXPECT_TRUE(found.is_complete);
  EXPECT_EQ(found.of_99, 1u);
  EXPECT_NEAR(found.stable_rank, 1, 1e-3);
}

TEST(SingularValues, OfNothingAndOfZerosHaveNoRank) {
  EXPECT_TRUE(singular_values(matrix({0, 3}, {})).values.empty());
  const SingularValues zeros = singular_values(matrix({2, 2}, {0, 0, 0, 0}));
  EXPECT_EQ(zeros.stable_rank, 0);
  EXPECT_FALSE(zeros.of_90);
}

TEST(SingularValues, AreOfRealFiniteMatricesOnly) {
  EXPECT_ERROR(singular_values(matrix({4}, {1, 2, 3, 4})), Errc::unsupported, "only a matrix has singular values");
  EXPECT_ERROR(singular_values(matrix({1, 2}, {1, std::numeric_limits<float>::infinity()})), Errc::unsupported,
               "the matrix has values that are not finite, so it has no singular values");
  EXPECT_ERROR(singular_values(Tensor::from_bytes(DType::c64, {1, 1}, std::vector<std::byte>(8))), Errc::unsupported,
               "singular values of complex matrices are not computed");
}

}  // namespace
}  // namespace ballast
