// The numbers of diff: norms, angles, places, roles, ranks, dtypes.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include <ballast/diff.hpp>

#include "builders/safetensors_file.hpp"

namespace ballast {
namespace {

using test::SafetensorsFile;
using Values = std::vector<float>;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInf = std::numeric_limits<float>::infinity();

Tensor tensor(const Values& values, const Shape& shape, DType dtype = DType::f32) {
  return Tensor::from_values<float>(DType::f32, shape, values).to(dtype);
}

Checkpoint one(const Values& values, const Shape& shape, DType dtype = DType::f32) {
  Checkpoint checkpoint;
  checkpoint.tensors.insert("w", tensor(values, shape, dtype));
  return checkpoint;
}

DiffReport::Change change_of(const Checkpoint& a, const Checkpoint& b, const DiffOptions& options = {}) {
  const DiffReport report = diff(a, b, options);
  EXPECT_EQ(report.changed.size(), 1u);
  return report.changed.at(0);
}

Values random_values(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  Values values(count);
  for (float& value : values) value = normal(random);
  return values;
}

TEST(DiffNumbers, AreRelativeChangeCosineRmsAndThePlaceOfTheLargest) {
  const auto change = change_of(one({3, 4, 0, 0}, {2, 2}), one({3, 0, 0, 2}, {2, 2}));
  ASSERT_TRUE(change.numbers);
  EXPECT_EQ(change.numbers->norm_a, 5);
  EXPECT_DOUBLE_EQ(change.numbers->norm_b, std::sqrt(13));
  EXPECT_DOUBLE_EQ(*change.numbers->relative_change(), std::sqrt(20) / 5);
  EXPECT_DOUBLE_EQ(*change.numbers->cosine(), 9 / (5 * std::sqrt(13)));
  EXPECT_DOUBLE_EQ(*change.numbers->rms(), std::sqrt(5));
  EXPECT_EQ(change.max_abs, 4);
  EXPECT_EQ(change.max_at, (std::vector<std::uint64_t>{0, 1}));
}

TEST(DiffNumbers, OfOppositeVectorsHaveTheCosineMinusOne) {
  const auto change = change_of(one({1, -2, 3}, {3}), one({-1, 2, -3}, {3}));
  EXPECT_EQ(change.numbers->cosine(), -1);
  EXPECT_EQ(change.numbers->relative_change(), 2);
}

TEST(DiffNumbers, AreNothingWhereANumberWouldBeDividedByZero) {
  const auto from_zero = change_of(one({0, 0}, {2}), one({0, 1}, {2}));
  EXPECT_EQ(from_zero.numbers->relative_change(), std::nullopt);
  EXPECT_EQ(from_zero.numbers->cosine(), std::nullopt);
  EXPECT_DOUBLE_EQ(*from_zero.numbers->rms(), std::sqrt(0.5));
  const auto to_zero = change_of(one({0, 1}, {2}), one({0, 0}, {2}));
  EXPECT_EQ(to_zero.numbers->relative_change(), 1);
  EXPECT_EQ(to_zero.numbers->cosine(), std::nullopt);
}

TEST(DiffNumbers, LeaveOutWhatIsNotFiniteOnEitherSide) {
  const auto change = change_of(one({3, kNan, 1, kInf, kInf, 4}, {6}), one({3, 7, kNan, 1, kInf, 0}, {6}));
  EXPECT_EQ(change.nan_mismatch, 2u);
  EXPECT_EQ(change.numbers->count, 2u);
  EXPECT_DOUBLE_EQ(*change.numbers->relative_change(), 0.8);
  EXPECT_EQ(change.max_abs, kInf);
  EXPECT_EQ(change.max_at, (std::vector<std::uint64_t>{3}));
  const auto nans = change_of(one({kNan}, {1}), one({1}, {1}));
  EXPECT_EQ(nans.numbers->rms(), std::nullopt);
  EXPECT_EQ(nans.max_at, std::nullopt);
}

TEST(DiffNumbers, OfAScalarHaveAnEmptyIndexAndOfNothingAreNone) {
  const auto scalar = change_of(one({2}, {}), one({3}, {}));
  EXPECT_EQ(scalar.max_at, std::vector<std::uint64_t>{});
  EXPECT_EQ(scalar.numbers->relative_change(), 0.5);
  EXPECT_TRUE(diff(one({}, {0, 4}), one({}, {0, 4})).equal());
  const auto shapes = change_of(one({}, {0, 4}), one({}, {4, 0}));
  EXPECT_EQ(shapes.what, DiffReport::What::shape);
  EXPECT_FALSE(shapes.numbers);
  EXPECT_EQ(shapes.compared, 0u);
}

TEST(DiffNumbers, OfDoublesWhoseSquaresOverflowAreNothing) {
  const auto wide = [](double x) { return SafetensorsFile().values<double>("w", "F64", {2}, {x, 1}).open(); };
  const auto change = change_of(wide(1e300), wide(-1e300));
  EXPECT_EQ(change.max_abs, 2e300);
  EXPECT_EQ(change.numbers->relative_change(), std::nullopt);
}

TEST(DiffNumbers, CountBothPartsOfComplexNumbersAndNamesTheElement) {
  const auto complex = [](float x) { return SafetensorsFile().values<float>("w", "C64", {2}, {0, 0, 3, x}).open(); };
  const auto change = change_of(complex(4), complex(0));
  EXPECT_EQ(change.max_at, (std::vector<std::uint64_t>{1}));
  EXPECT_DOUBLE_EQ(*change.numbers->relative_change(), 0.8);
  EXPECT_EQ(change.different, 1u);
}

// Every type is summed as F32 or F64; the place is found across blocks, chunks and parts.
TEST(DiffNumbers, AreThoseOfPlainLoopsAndTheSameWithAnyNumberOfThreads) {
  constexpr std::size_t kRows = 4567, kColumns = 1000;
  Values a = random_values(kRows * kColumns, 1), b = random_values(kRows * kColumns, 2);
  b[4'000'123] = 100;
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    const Checkpoint left = one(a, {kRows, kColumns}, dtype), right = one(b, {kRows, kColumns}, dtype);
    const auto single = change_of(left, right, {.threads = 1}), many = change_of(left, right, {.threads = 3});
    EXPECT_EQ(single.max_at, (std::vector<std::uint64_t>{4000, 123}));
    EXPECT_EQ(single.numbers->norm_a, many.numbers->norm_a);
    EXPECT_EQ(single.numbers->norm_change, many.numbers->norm_change);
    EXPECT_EQ(single.numbers->product, many.numbers->product);
    EXPECT_EQ(single.max_rel, many.max_rel);
    const Tensor wide_a = left.at("w").to(DType::f64).realize(), wide_b = right.at("w").to(DType::f64).realize();
    const auto x = wide_a.as<double>(), y = wide_b.as<double>();
    double squares = 0, products = 0, max_rel = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      squares += (x[i] - y[i]) * (x[i] - y[i]);
      products += x[i] * y[i];
      const double larger = std::max(std::fabs(x[i]), std::fabs(y[i]));
      if (larger > 0) max_rel = std::max(max_rel, std::fabs(x[i] - y[i]) / larger);
    }
    const double precision = dtype == DType::bf16 ? 2e-8 : 1e-12;  // blocks of BF16 are added up as F32 first
    EXPECT_NEAR(single.numbers->norm_change / std::sqrt(squares), 1, precision);
    EXPECT_NEAR(single.numbers->product, products, squares * precision);
    EXPECT_EQ(single.max_rel, max_rel);
  }
}

// |a - b| <= atol + rtol * |b|, of which b is the second.
TEST(DiffTolerance, IsThatOfNumPy) {
  const Checkpoint a = one({100, 1, kInf, kNan}, {4}), b = one({101, 1, kInf, kNan}, {4});
  EXPECT_TRUE(diff(a, b, {.rtol = 0.01}).equal());
  EXPECT_FALSE(diff(b, a, {.rtol = 0.0099}).equal());
  EXPECT_FALSE(diff(a, b, {.rtol = 0.0099}).equal());
  EXPECT_TRUE(diff(a, b, {.tolerance = 0.5, .rtol = 0.005}).equal());
  EXPECT_TRUE(diff(b, a, {.rtol = 0.01}).equal());
  EXPECT_FALSE(diff(one({101}, {1}), one({100}, {1}), {.rtol = 0.00995}).equal());
  EXPECT_TRUE(diff(one({100}, {1}), one({101}, {1}), {.rtol = 0.00995}).equal());
  EXPECT_FALSE(diff(one({1}, {1}), one({kInf}, {1}), {.rtol = 0.5}).equal());
  EXPECT_FALSE(diff(one({-kInf}, {1}), one({kInf}, {1}), {.tolerance = 1, .rtol = 0.5}).equal());
  const auto change = change_of(one({1, 2, 3}, {3}), one({1.1F, 2, 4}, {3}), {.rtol = 0.2});
  EXPECT_EQ(change.different, 1u);
  EXPECT_EQ(change.max_at, (std::vector<std::uint64_t>{2}));
}

TEST(DiffDtypes, HaveTheNumbersOfTheirValuesBesideThem) {
  const Values values = {1, 2, 3.001F, 4};
  const auto change = change_of(one(values, {4}), one(values, {4}, DType::bf16));
  EXPECT_EQ(change.what, DiffReport::What::dtype);
  EXPECT_EQ(change.compared, 4u);
  EXPECT_EQ(change.different, 1u);
  EXPECT_EQ(change.max_at, (std::vector<std::uint64_t>{2}));
  EXPECT_GT(*change.numbers->relative_change(), 0);
  const DiffReport report = diff(one(values, {4}), one(values, {4}, DType::bf16), {.ignore_dtype = true});
  EXPECT_EQ(report.changed.at(0).what, DiffReport::What::values);
  EXPECT_TRUE(diff(one(values, {4}), one(values, {4}, DType::bf16), {.rtol = 0.01, .ignore_dtype = true}).equal());
  EXPECT_TRUE(diff(one({1, 2}, {2}), one({1, 2}, {2}, DType::f16), {.ignore_dtype = true}).equal());
  EXPECT_FALSE(diff(one({1, 2}, {2}), one({1, 2}, {2}, DType::f16)).equal());
  EXPECT_FALSE(diff(one({1, 2}, {2}), one({1, 2}, {2}, DType::f16), {.rtol = 1}).equal());
}

TEST(DiffDtypes, AreComparedAcrossIntegersAndFloats) {
  const Checkpoint whole = SafetensorsFile().values<std::int64_t>("w", "I64", {2}, {1, 3}).open();
  EXPECT_TRUE(diff(whole, one({1, 3}, {2}), {.ignore_dtype = true}).equal());
  EXPECT_EQ(change_of(whole, one({1, 4}, {2})).max_abs, 1);
  const Checkpoint complex = SafetensorsFile().values<float>("w", "C64", {2}, {1, 0, 3, 0}).open();
  const auto change = change_of(complex, one({1, 3}, {2}), {.ignore_dtype = true});
  EXPECT_EQ(change.what, DiffReport::What::dtype);  // a complex number is no real one
  EXPECT_FALSE(change.numbers);
}

TEST(DiffDtypes, SayWhatAQuantizationCosts) {
  Checkpoint before, after;
  for (const char* name : {"blk.0.ffn_down.weight", "blk.1.ffn_down.weight"}) {
    const Values values = random_values(64 * 32, name[4] == '0' ? 1 : 2);
    before.tensors.insert(name, tensor(values, {64, 32}));
    after.tensors.insert(name, tensor(values, {64, 32}, name[4] == '0' ? DType::q4_0 : DType::q8_0));
  }
  const DiffReport report = diff(before, after);
  ASSERT_EQ(report.dtype_costs.size(), 2u);
  for (const auto& cost : report.dtype_costs) {
    const bool is_coarse = cost.dtype_b == DType::q4_0;
    EXPECT_EQ(cost.worst_name, is_coarse ? "blk.0.ffn_down.weight" : "blk.1.ffn_down.weight");
    EXPECT_NEAR(*cost.numbers.relative_change(), is_coarse ? 0.08 : 0.006, is_coarse ? 0.03 : 0.003);
  }
  EXPECT_EQ(report.by_change().front()->name, "blk.0.ffn_down.weight");
}

TEST(DiffNumbers, OfBlocksAreThoseOfTheirValues) {
  Values values = random_values(64, 3);
  const Checkpoint a = one(values, {2, 32}, DType::q8_0);
  values[40] += 1;
  const auto change = change_of(a, one(values, {2, 32}, DType::q8_0));
  EXPECT_EQ(change.compared, 2u);  // blocks
  EXPECT_EQ(change.different, 1u);
  EXPECT_EQ(change.max_at, (std::vector<std::uint64_t>{1, 8}));
  EXPECT_NEAR(change.max_abs, 1, 0.05);
  EXPECT_GT(*change.numbers->relative_change(), 0.05);
}

TEST(DiffRoles, FoldLayersAndNameTheWorst) {
  Checkpoint a, b;
  for (int layer = 0; layer < 12; ++layer) {
    const std::string name = "layers." + std::to_string(layer) + ".w";
    a.tensors.insert(name, tensor({1, 0}, {2}));
    b.tensors.insert(name, tensor({1, layer < 4 ? 0 : static_cast<float>(layer) / 100}, {2}));
    a.tensors.insert("layers." + std::to_string(layer) + ".same", tensor({1, 0}, {2}));
    b.tensors.insert("layers." + std::to_string(layer) + ".same", tensor({1, 0}, {2}));
  }
  a.tensors.insert("layers.12.w", tensor({1}, {1}));  // only here
  const DiffReport report = diff(a, b);
  EXPECT_EQ(report.equal_count, 4u + 12u);
  ASSERT_EQ(report.roles.size(), 1u);
  const DiffReport::Role& role = report.roles[0];
  EXPECT_EQ(role.pattern, "layers.#.w");
  EXPECT_EQ(role.tensors, 12u);
  EXPECT_EQ(role.changed, 8u);
  EXPECT_EQ(role.worst_name, "layers.11.w");
  EXPECT_NEAR(*role.worst, 0.11, 1e-7);
  EXPECT_NEAR(*role.median, 0.055, 1e-7);  // of 0, 0, 0, 0, 0.04, ..., 0.11
  ASSERT_EQ(role.layers.size(), 12u);
  EXPECT_EQ(role.layers[3].relative, 0);
  EXPECT_NEAR(*role.layers[10].relative, 0.1, 1e-7);
  EXPECT_EQ(report.by_change().front()->name, "layers.11.w");
}

TEST(DiffRoles, TakeNumbersAsTheyCome) {
  Checkpoint a, b;
  for (const std::string name : {"x.99999999999999999999999.w", "x.18446744073709551615.w", "0", ".1.", ""}) {
    a.tensors.insert(name, tensor({1}, {1}));
    b.tensors.insert(name, tensor({2}, {1}));
  }
  const DiffReport report = diff(a, b);
  std::vector<std::string> patterns;
  for (const auto& role : report.roles) patterns.push_back(role.pattern);
  EXPECT_EQ(patterns, (std::vector<std::string>{"", "#", ".#.", "x.#.w"}));
  EXPECT_TRUE(report.roles[3].layers.empty());
}

// A change of rank 3, in a small matrix (all singular values) and in a large one (a subspace).
TEST(DiffRank, OfAMergedLoraIsThatOfTheLora) {
  for (const std::size_t size : {std::size_t{40}, std::size_t{700}}) {
    const Values base = random_values(size * (size + 20), 4), u = random_values(size * 3, 5),
                 v = random_values(3 * (size + 20), 6);
    Values tuned = base;
    for (std::size_t i = 0; i < tuned.size(); ++i) {
      for (std::size_t k = 0; k < 3; ++k) tuned[i] += u[i / (size + 20) * 3 + k] * v[k * (size + 20) + i % (size + 20)];
    }
    const Shape shape{size, size + 20};
    const auto change = change_of(one(base, shape, DType::f32), one(tuned, shape, DType::f32), {.ranks = true});
    ASSERT_TRUE(change.rank) << size;
    EXPECT_EQ(change.rank->before_gap, 3u) << size;
    EXPECT_EQ(change.rank->of_99, 3u) << size;
    EXPECT_GT(change.rank->stable, 2) << size;
    EXPECT_LE(change.rank->stable, 3.001) << size;
    const auto rounded = change_of(one(base, shape, DType::bf16), one(tuned, shape, DType::bf16), {.ranks = true});
    EXPECT_EQ(rounded.rank->before_gap, 3u) << size;
  }
}

TEST(DiffRank, OfNoiseHasNoGap) {
  const Values base = random_values(700 * 720, 1), other = random_values(700 * 720, 2);
  const auto change = change_of(one(base, {700, 720}), one(other, {700, 720}), {.ranks = true});
  ASSERT_TRUE(change.rank);
  EXPECT_EQ(change.rank->before_gap, std::nullopt);
  EXPECT_EQ(change.rank->of_90, std::nullopt);
  EXPECT_GT(change.rank->stable, 100);
}

TEST(DiffRank, IsKnownForHugeAndTinyChanges) {
  for (const double scale : {1e-200, 1e-30, 1e30, 1e140}) {
    const auto matrix = [&](double x) {
      return SafetensorsFile().values<double>("w", "F64", {2, 2}, {x, 0, 0, x / 2}).open();
    };
    const auto change = change_of(matrix(scale), matrix(2 * scale), {.ranks = true});
    const bool has_norm = scale > 1e-160;  // its square is not 0
    ASSERT_EQ(change.rank.has_value(), has_norm) << scale;
    if (!has_norm) continue;
    EXPECT_NEAR(change.rank->stable, 1.25, 1e-5) << scale;
  }
}

TEST(DiffRank, IsThatOfMatricesOfFiniteNumbersOnly) {
  EXPECT_FALSE(change_of(one({1, 2, 3, 4}, {4}), one({1, 2, 3, 5}, {4}), {.ranks = true}).rank);
  EXPECT_FALSE(change_of(one({1, 2, 3, 4}, {2, 2}), one({1, 2, 3, kInf}, {2, 2}), {.ranks = true}).rank);
  EXPECT_FALSE(change_of(one({1, 2, 3, kNan}, {2, 2}), one({1, 2, 4, kNan}, {2, 2}), {.ranks = true}).rank);
  EXPECT_EQ(change_of(one({1, 2, 3, 4}, {1, 4}), one({1, 2, 3, 5}, {1, 4}), {.ranks = true}).rank->of_99, 1u);
}

}  // namespace
}  // namespace ballast
