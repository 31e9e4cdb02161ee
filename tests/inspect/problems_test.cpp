// find_problems: every kind, the first index, and what is left alone.
#include <ballast/problems.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include <ballast/stats.hpp>

#include "builders/safetensors_file.hpp"
#include "support/expect_error.hpp"
#include "support/tensor_values.hpp"

namespace ballast {
namespace {

using test::SafetensorsFile;
using Index = std::vector<std::uint64_t>;

constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();

// Values of a weight, different from each other.
std::vector<float> weights(std::size_t count, float scale = 1) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = scale * std::sin(static_cast<float>(i) + 1);
  return values;
}

Checkpoint with(std::string_view dtype, const std::vector<std::uint64_t>& shape, const std::vector<float>& values) {
  return SafetensorsFile().values<float>("w", dtype, shape, values).open();
}

std::vector<Problem> problems_of(const Checkpoint& checkpoint, unsigned threads = 0) {
  return find_problems(checkpoint, {.threads = threads}).problems;
}

// The only problem; fails the test if there is another number.
Problem only(const std::vector<Problem>& problems) {
  EXPECT_EQ(problems.size(), 1u);
  return problems.empty() ? Problem{} : problems[0];
}

TEST(Problems, AreNotThereInAnOrdinaryCheckpoint) {
  const ProblemReport report = find_problems(with("F32", {4, 16}, weights(64)));
  EXPECT_TRUE(report.ok());
  EXPECT_EQ(report.tensors, 1u);
  EXPECT_TRUE(report.skipped.empty());
}

TEST(Problems, NameTheFirstNanAndTheFirstInfinity) {
  auto values = weights(24);
  values[9] = kNan;
  values[14] = -kInf;
  values[15] = kInf;
  const auto problems = problems_of(with("F32", {2, 3, 4}, values));
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_EQ(problems[0].kind, ProblemKind::nan);
  EXPECT_EQ(problems[0].first, (Index{0, 2, 1}));
  EXPECT_EQ(problems[0].text, "1 of 24 values is NaN, at [0, 2, 1]");
  EXPECT_EQ(problems[1].kind, ProblemKind::infinity);
  EXPECT_EQ(problems[1].count, 2u);
  EXPECT_EQ(problems[1].text, "2 of 24 values are infinite, the first at [1, 0, 2]");
  EXPECT_EQ(severity(problems[0].kind), ProblemSeverity::error);
}

TEST(Problems, AreFoundInTheLastElementOfSeveralParts) {
  auto values = weights(5 << 20);  // 20 MiB: five parts
  values.back() = kNan;
  const Checkpoint checkpoint = with("F32", {5 << 10, 1 << 10}, values);
  for (const unsigned threads : {1U, 3U}) {
    const Problem problem = only(problems_of(checkpoint, threads));
    EXPECT_EQ(problem.kind, ProblemKind::nan);
    EXPECT_EQ(problem.first, (Index{(5 << 10) - 1, (1 << 10) - 1}));
  }
}

TEST(Problems, NameTheEarliestOfSeveralParts) {
  auto values = weights(5 << 20);
  for (const std::size_t i : {(std::size_t{5} << 20) - 1, std::size_t{3} << 20, (std::size_t{1} << 20) + 7})
    values[i] = kInf;
  const Problem problem = only(problems_of(with("F32", {5 << 20}, values), 3));
  EXPECT_EQ(problem.count, 3u);
  EXPECT_EQ(problem.first, (Index{(1 << 20) + 7}));
}

TEST(Problems, CountPositionsInAStridedView) {
  auto values = weights(6 * 10);
  values[2 * 10 + 7] = kNan;  // row 2, column 7
  Checkpoint checkpoint = with("F32", {6, 10}, values);
  Checkpoint views;
  views.tensors.insert("transposed", checkpoint.at("w").transpose());
  views.tensors.insert("sliced", checkpoint.at("w").slice(parse_slice("1:5:1, 1::2")));
  const auto problems = problems_of(views);
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_EQ(problems[0].first, (Index{7, 2}));
  EXPECT_EQ(problems[1].first, (Index{1, 3}));
}

TEST(Problems, OfATensorOfZerosAreNothingElse) {
  for (const float zero : {0.0F, -0.0F}) {
    const Problem problem = only(problems_of(with("F32", {4, 16}, std::vector<float>(64, zero))));
    EXPECT_EQ(problem.kind, ProblemKind::zeros);
    EXPECT_EQ(problem.count, 64u);
    EXPECT_EQ(problem.first, (Index{0, 0}));
    EXPECT_EQ(severity(problem.kind), ProblemSeverity::warning);
  }
  EXPECT_TRUE(problems_of(with("F32", {0, 16}, {})).empty());
}

TEST(Problems, OfRowsAreCountedWithTheFirst) {
  auto values = weights(10 * 9);
  std::fill_n(values.begin() + 3 * 9, 9, 0.5F);
  std::fill_n(values.begin() + 7 * 9, 18, 0.0F);
  values[7 * 9 + 4] = -0.0F;  // equal to 0
  const Problem problem = only(problems_of(with("F32", {2, 5, 9}, values)));
  EXPECT_EQ(problem.kind, ProblemKind::constant_rows);
  EXPECT_EQ(problem.count, 3u);
  EXPECT_EQ(problem.first, (Index{0, 3, 0}));
  EXPECT_EQ(problem.text, "3 of 10 rows are constant (2 of them 0), the first at [0, 3, 0]");
}

TEST(Problems, OfRowsNeedSeveralRowsOfEightColumns) {
  EXPECT_TRUE(problems_of(with("F32", {1, 64}, std::vector<float>(64, 2))).empty());
  EXPECT_TRUE(problems_of(with("F32", {64}, std::vector<float>(64, 2))).empty());
  EXPECT_TRUE(problems_of(with("F32", {8, 7}, std::vector<float>(56, 2))).empty());
  EXPECT_EQ(problems_of(with("F32", {7, 8}, std::vector<float>(56, 2)))[0].count, 7u);
}

// Rows that do not end where parts end, and a row of several parts.
TEST(Problems, OfRowsDoNotDependOnWhereTheTensorIsCut) {
  constexpr std::size_t kColumns = 1'000'003, kRows = 5;
  auto values = weights(kColumns * kRows);
  std::fill_n(values.begin() + kColumns, kColumns, 3.0F);
  std::fill_n(values.begin() + 3 * kColumns, kColumns, 3.0F);
  values[3 * kColumns + kColumns / 2] = 4;
  std::fill_n(values.begin() + 4 * kColumns, kColumns, -1.0F);
  for (const unsigned threads : {1U, 3U}) {
    const Problem problem = only(problems_of(with("F32", {kRows, kColumns}, values), threads));
    EXPECT_EQ(problem.count, 2u);
    EXPECT_EQ(problem.first, (Index{1, 0}));
  }
  const auto wide = with("F32", {2, kColumns * kRows / 2}, std::vector<float>(kColumns * kRows / 2 * 2, 7));
  EXPECT_EQ(only(problems_of(wide, 3)).count, 2u);
}

TEST(Problems, OfARowThatIsNotFiniteAreNotThatItIsConstant) {
  auto values = weights(32);
  std::fill_n(values.begin() + 8, 8, kInf);
  std::fill_n(values.begin() + 16, 8, kNan);
  const auto problems = problems_of(with("F32", {4, 8}, values));
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_EQ(problems[1].kind, ProblemKind::infinity);
}

SafetensorsFile layers(std::size_t count, std::size_t odd, float scale) {
  SafetensorsFile file;
  for (std::size_t i = 0; i < count; ++i)
    file.values<float>("layers." + std::to_string(i) + ".w", "F32", {64}, weights(64, i == odd ? scale : 1));
  return file;
}

TEST(Problems, OfSpreadAreAgainstTheMedianOfThePattern) {
  for (const float scale : {8.1F, 1 / 8.1F}) {
    const Problem problem = only(problems_of(layers(5, 3, scale).open()));
    EXPECT_EQ(problem.kind, ProblemKind::outlier);
    EXPECT_EQ(problem.tensor, "layers.3.w");
    EXPECT_TRUE(problem.first.empty());
    EXPECT_NEAR(problem.std / problem.median_std, static_cast<double>(scale), 1e-3);
    EXPECT_NE(problem.text.find("layers.#.w"), std::string::npos);
  }
  EXPECT_TRUE(problems_of(layers(5, 3, 7.9F).open()).empty());
  EXPECT_EQ(find_problems(layers(5, 3, 2.1F).open(), {.outlier_factor = 2}).problems.size(), 1u);
  EXPECT_TRUE(find_problems(layers(5, 3, 99).open(), {.outlier_factor = std::numeric_limits<double>::infinity()}).ok());
}

TEST(Problems, OfSpreadNeedFourSiblings) {
  EXPECT_TRUE(problems_of(layers(3, 1, 100).open()).empty());
  EXPECT_EQ(problems_of(layers(4, 1, 100).open()).size(), 1u);
}

// Most biases are 0: the one that is not is no outlier.
TEST(Problems, OfSpreadAreNotComparedWithAMedianOfZero) {
  SafetensorsFile file;
  for (int i = 0; i < 5; ++i)
    file.values<float>(std::to_string(i) + ".b", "F32", {8}, i == 2 ? weights(8) : std::vector<float>(8));
  const auto problems = problems_of(file.open());
  ASSERT_EQ(problems.size(), 4u);
  for (const Problem& problem : problems) EXPECT_EQ(problem.kind, ProblemKind::zeros);
}

TEST(Problems, RefuseAFactorThatMakesNoSense) {
  const Checkpoint checkpoint = with("F32", {2}, {1, 2});
  for (const double factor : {0.5, -1.0, std::nan("")})
    EXPECT_ERROR(find_problems(checkpoint, {.outlier_factor = factor}), Errc::invalid_argument, "factor");
}

TEST(Problems, AreLookedForInEveryDtypeThatHasAnOrder) {
  for (const DTypeInfo& type : all_dtypes()) {
    if (!type.in_safetensors) continue;
    const auto file =
        SafetensorsFile().tensor("w", type.name, {16}, 0, *bytes_of(type.dtype, 16)).data(*bytes_of(type.dtype, 16));
    const ProblemReport report = find_problems(file.open());
    if (type.kind == DTypeKind::complex) {
      ASSERT_EQ(report.skipped.size(), 1u);
      EXPECT_NE(report.skipped[0].why.find("C64"), std::string::npos);
    } else if (type.dtype == DType::f8_e8m0) {
      EXPECT_TRUE(report.ok());  // has no 0
    } else {
      EXPECT_EQ(only(report.problems).kind, ProblemKind::zeros) << type.name;
    }
  }
}

TEST(Problems, AreFoundInSmallFloats) {
  const auto first_nan = [](std::string_view dtype, std::uint8_t code, std::uint8_t other) {
    std::vector<std::uint8_t> codes(16, other);
    codes[0] = static_cast<std::uint8_t>(other + 1);
    codes[11] = code;
    const auto problems = problems_of(SafetensorsFile().values<std::uint8_t>("w", dtype, {16}, codes).open());
    return only(problems).kind == ProblemKind::nan ? problems[0].first : Index{};
  };
  EXPECT_EQ(first_nan("F8_E4M3", 0x7F, 0x30), Index{11});
  EXPECT_EQ(first_nan("F8_E5M2", 0x7D, 0x30), Index{11});
  EXPECT_EQ(first_nan("F8_E8M0", 0xFF, 0x70), Index{11});
  const std::vector<std::uint16_t> halves = {0x3C00, 0x3D00, 0x7E00, 0x3C00};
  EXPECT_EQ(only(problems_of(SafetensorsFile().values("w", "F16", {2, 2}, halves).open())).first, (Index{1, 0}));
  const std::vector<std::uint16_t> brains = {0x3F80, 0x7FC0, 0x3F81, 0xFF80};
  EXPECT_EQ(problems_of(SafetensorsFile().values("w", "BF16", {2, 2}, brains).open()).size(), 2u);
}

TEST(Problems, AreFoundInGgmlBlocks) {
  std::vector<float> values = weights(256 * 4);
  Checkpoint checkpoint;
  checkpoint.tensors.insert("w", Tensor::from_values<float>(DType::f32, {4, 256}, values).to(DType::q8_0).realize());
  EXPECT_TRUE(find_problems(checkpoint).ok());
  std::vector<std::byte> bytes(checkpoint.at("w").nbytes());
  checkpoint.at("w").read(0, bytes);
  bytes[34 * 9 + 1] = std::byte{0x7E};  // the scale of the tenth block is NaN
  Checkpoint broken;
  broken.tensors.insert("w", Tensor::from_bytes(DType::q8_0, {4, 256}, bytes));
  const Problem problem = only(problems_of(broken));
  EXPECT_EQ(problem.kind, ProblemKind::nan);
  EXPECT_EQ(problem.first, (Index{1, 32}));
  EXPECT_EQ(problem.count, 32u);
}

TEST(Problems, OfIntegersAreZerosAlone) {
  const std::vector<std::int64_t> mask(32, 1);
  EXPECT_TRUE(problems_of(SafetensorsFile().values("w", "I64", {4, 8}, mask).open()).empty());
  EXPECT_EQ(only(problems_of(SafetensorsFile().values("w", "I64", {4, 8}, std::vector<std::int64_t>(32)).open())).kind,
            ProblemKind::zeros);
}

TEST(Problems, OfACounterAreNone) {
  EXPECT_TRUE(
      problems_of(SafetensorsFile().values<std::int64_t>("num_batches_tracked", "I64", {}, {0}).open()).empty());
  EXPECT_EQ(only(problems_of(with("F32", {}, {0}))).text, "the only value is 0");
}

TEST(Problems, AreNotLookedForWithoutData) {
  Checkpoint checkpoint;
  checkpoint.tensors.insert("w", Tensor(DType::f32, {2}, meta_storage(8)));
  const ProblemReport report = find_problems(checkpoint);
  EXPECT_EQ(report.tensors, 0u);
  ASSERT_EQ(report.skipped.size(), 1u);
  EXPECT_EQ(report.skipped[0].tensor, "w");
}

TEST(Problems, OfSubnormalNumbersAreNone) {
  EXPECT_TRUE(problems_of(with("F32", {4}, {1e-45F, -1e-45F, 3e-39F, 0})).empty());
}

TEST(Problems, OfAnExpandingViewAreALimit) {
  Checkpoint bomb;
  bomb.tensors.insert(
      "w", Tensor(DType::u8, {std::uint64_t{1} << 50}, Strides{0}, memory_storage(std::vector<std::byte>(4))));
  EXPECT_ERROR(find_problems(bomb), Errc::limit, "\"w\" repeats bytes");
}

}  // namespace
}  // namespace ballast
