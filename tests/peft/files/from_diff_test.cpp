// A LoRA from two checkpoints.
#include <ballast/from_diff.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include <ballast/ballast.hpp>

#include "kernels/linear/svd.hpp"
#include "support/expect_error.hpp"
#include "support/tensor_values.hpp"

namespace ballast {
namespace {

using test::values_of;

using Matrix = std::vector<float>;

Matrix random_matrix(std::size_t rows, std::size_t columns, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  Matrix values(rows * columns);
  for (float& value : values) value = normal(random);
  return values;
}

// [rows, inner] x [inner, columns]
Matrix product(const Matrix& a, const Matrix& b, std::size_t rows, std::size_t inner, std::size_t columns) {
  Matrix c(rows * columns);
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t i = 0; i < inner; ++i) {
      for (std::size_t k = 0; k < columns; ++k) c[r * columns + k] += a[r * inner + i] * b[i * columns + k];
    }
  }
  return c;
}

double distance(const Matrix& a, const Matrix& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += std::pow(static_cast<double>(a[i]) - b[i], 2);
  return std::sqrt(sum);
}

Tensor tensor_of(const Matrix& values, const Shape& shape) {
  return Tensor::from_values<float>(DType::f32, shape, values);
}

struct Models {
  Checkpoint base, tuned;

  void add(const std::string& name, const Shape& shape, const Matrix& before, const Matrix& change) {
    Matrix after = before;
    for (std::size_t i = 0; i < after.size(); ++i) after[i] += change[i];
    base.tensors.insert(name, tensor_of(before, shape));
    tuned.tensors.insert(name, tensor_of(after, shape));
  }
};

TEST(TruncatedSvd, IsExactForSmallMatricesOfEitherShape) {
  for (const auto& [rows, columns] : {std::pair<std::size_t, std::size_t>(5, 8), {8, 5}, {1, 7}, {7, 1}, {6, 6}}) {
    const Matrix matrix = random_matrix(rows, columns, 3);
    const std::size_t all = std::min(rows, columns);
    auto svd = kernels::truncated_svd(matrix, rows, columns, 100);
    ASSERT_EQ(svd.rank, all);
    EXPECT_TRUE(std::is_sorted(svd.values.rbegin(), svd.values.rend()));
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t k = 0; k < all; ++k) svd.u[r * all + k] *= svd.values[k];
    }
    EXPECT_LT(distance(product(svd.u, svd.v, rows, all, columns), matrix), 1e-5);
  }
  EXPECT_EQ(kernels::truncated_svd({}, 0, 5, 3).rank, 0u);
}

// No approximation can be better than exact singular values, and this one is hardly worse.
TEST(TruncatedSvd, IsAsGoodAsExactForLargeMatrices) {
  constexpr std::size_t kRows = 1100, kColumns = 1050, kRank = 8;
  Matrix matrix = product(random_matrix(kRows, kRank, 1), random_matrix(kRank, kColumns, 2), kRows, kRank, kColumns);
  const Matrix noise = random_matrix(kRows, kColumns, 4);
  for (std::size_t i = 0; i < matrix.size(); ++i) matrix[i] += 0.01F * noise[i];
  auto svd = kernels::truncated_svd(matrix, kRows, kColumns, kRank);
  ASSERT_EQ(svd.rank, kRank);
  for (std::size_t r = 0; r < kRows; ++r) {
    for (std::size_t k = 0; k < kRank; ++k) svd.u[r * kRank + k] *= svd.values[k];
  }
  const double left = distance(product(svd.u, svd.v, kRows, kRank, kColumns), matrix);
  EXPECT_LT(left, 0.01 * std::sqrt(kRows * kColumns));
  EXPECT_GT(left, 0.0098 * std::sqrt(kRows * kColumns));
}

TEST(LoraFromDiff, FindsTheChangeThatARankCanHold) {
  Models models;
  models.add("m.q_proj.weight", {24, 16}, random_matrix(24, 16, 1),
             product(random_matrix(24, 3, 2), random_matrix(3, 16, 3), 24, 3, 16));
  models.add("m.same.weight", {4, 4}, random_matrix(4, 4, 4), Matrix(16));
  models.add("m.norm.weight", {4}, random_matrix(4, 1, 5), random_matrix(4, 1, 6));
  models.add("m.full.weight", {10, 12}, random_matrix(10, 12, 7), random_matrix(10, 12, 8));
  models.base.tensors.insert("m.gone", tensor_of({1}, {1}));
  const auto [adapter, report] = lora_from_diff(models.base, models.tuned, {.rank = 3});
  ASSERT_EQ(report.layers.size(), 2u);
  EXPECT_EQ(report.layers[0].name, "m.q_proj.weight");
  EXPECT_LT(report.layers[0].error, 1e-3);
  EXPECT_GT(report.layers[1].error, 0.3);
  EXPECT_EQ(report.left, std::vector<std::string>{"m.norm.weight"});
  EXPECT_EQ(report.missing, std::vector<std::string>{"m.gone"});
  EXPECT_EQ(report.unchanged, 1u);
  EXPECT_EQ(adapter.config.peft_type(), "LORA");
  EXPECT_EQ(lora_scaling(adapter.config, "m.q_proj"), 1.0);

  const Matrix a = values_of(adapter.tensors.at("base_model.model.m.q_proj.lora_A.weight"));
  const Matrix b = values_of(adapter.tensors.at("base_model.model.m.q_proj.lora_B.weight"));
  Matrix after = product(b, a, 24, 3, 16);
  const Matrix before = values_of(models.base.at("m.q_proj.weight"));
  for (std::size_t i = 0; i < after.size(); ++i) after[i] += before[i];
  EXPECT_LT(distance(after, values_of(models.tuned.at("m.q_proj.weight"))), 1e-4);
}

TEST(LoraFromDiff, KeepsConvolutionsEmbeddingsAndTransposedMatricesAsPeftDoes) {
  Models models;
  models.add("conv.weight", {6, 2, 3, 3}, random_matrix(6, 18, 1), random_matrix(6, 18, 2));
  models.add("embed_tokens.weight", {20, 8}, random_matrix(20, 8, 3), random_matrix(20, 8, 4));
  models.add("h.0.c_attn.weight", {8, 24}, random_matrix(8, 24, 5), random_matrix(8, 24, 6));
  const auto found = lora_from_diff(models.base, models.tuned, {.rank = 7, .fan_in_fan_out = true});
  const StateDict& tensors = found.adapter.tensors;
  EXPECT_EQ(tensors.at("base_model.model.conv.lora_A.weight").shape(), Shape({6, 2, 3, 3}));
  EXPECT_EQ(tensors.at("base_model.model.conv.lora_B.weight").shape(), Shape({6, 6, 1, 1}));
  EXPECT_LT(found.report.layers[0].error, 1e-3);  // the whole change, whose rank is 6
  EXPECT_EQ(lora_scaling(found.adapter.config, "conv"), 1.0);
  EXPECT_EQ(tensors.at("base_model.model.embed_tokens.lora_embedding_A").shape(), Shape({7, 20}));
  EXPECT_EQ(tensors.at("base_model.model.embed_tokens.lora_embedding_B").shape(), Shape({8, 7}));
  EXPECT_EQ(tensors.at("base_model.model.h.0.c_attn.lora_A.weight").shape(), Shape({7, 8}));
  EXPECT_EQ(tensors.at("base_model.model.h.0.c_attn.lora_B.weight").shape(), Shape({24, 7}));
  check_adapter(found.adapter);
}

TEST(LoraFromDiff, GivesARankOfItsOwnToOneModuleOnly) {
  Models models;
  for (const auto& [module, size] : {std::pair<std::string, std::size_t>("q", 4), {"x.q", 16}, {"y.x.q", 6}})
    models.add(module + ".weight", {size, size}, random_matrix(size, size, 1), random_matrix(size, size, 2));
  const FromDiff found = lora_from_diff(models.base, models.tuned, {.rank = 8});
  EXPECT_EQ(to_string(found.adapter.config.fields.at("rank_pattern")), R"({"^q":4,"^y\\.x\\.q":6})");
  for (const char* module : {"q", "x.q", "y.x.q"}) EXPECT_EQ(lora_scaling(found.adapter.config, module), 1.0) << module;
  check_adapter(found.adapter);
}

TEST(LoraFromDiff, LeavesIntegersAlone) {
  Models models;
  models.add("a.weight", {2, 2}, {1, 2, 3, 4}, {1, 0, 0, 0});
  for (const auto& [checkpoint, number] : {std::pair(&models.base, 1), std::pair(&models.tuned, 2)}) {
    const std::vector<std::int64_t> numbers(4, number);
    checkpoint->tensors.insert("i.weight", Tensor::from_values<std::int64_t>(DType::i64, {2, 2}, numbers));
  }
  const FromDiff found = lora_from_diff(models.base, models.tuned, {.rank = 1});
  EXPECT_EQ(found.report.left, std::vector<std::string>{"i.weight"});
  EXPECT_EQ(found.report.layers.size(), 1u);
}

// Both files have the names of llama.cpp; the LoRA has the names and rows of Hugging Face, as every adapter has.
TEST(LoraFromDiff, GivesTwoGgufsTheNamesThatAdaptersKnow) {
  Models models;
  models.add("model.layers.0.self_attn.q_proj.weight", {16, 32}, random_matrix(16, 32, 1), random_matrix(16, 32, 2));
  models.add("model.layers.0.self_attn.k_proj.weight", {8, 32}, random_matrix(8, 32, 3), random_matrix(8, 32, 4));
  models.add("model.embed_tokens.weight", {20, 32}, random_matrix(20, 32, 5), random_matrix(20, 32, 6));
  const FromDiff expected = lora_from_diff(models.base, models.tuned, {.rank = 16});
  const NameOptions names{.architecture = "llama", .head_count = 4, .head_count_kv = 2};
  Models ggufs{to_names(models.base, NameStyle::gguf, names), to_names(models.tuned, NameStyle::gguf, names)};
  ggufs.add("blk.0.of_nobody.weight", {4, 4}, random_matrix(4, 4, 7), random_matrix(4, 4, 8));
  for (Checkpoint* gguf : {&ggufs.base, &ggufs.tuned}) gguf->format = Format::gguf;

  const FromDiff found = lora_from_diff(ggufs.base, ggufs.tuned, {.rank = 16});
  EXPECT_EQ(found.report.left, std::vector<std::string>{"blk.0.of_nobody.weight"});
  ASSERT_EQ(found.adapter.tensors.size(), expected.adapter.tensors.size());
  for (const auto& [name, tensor] : expected.adapter.tensors)
    EXPECT_EQ(values_of(found.adapter.tensors.at(name)), values_of(tensor)) << name;

  Checkpoint unknown = ggufs.base;
  unknown.typed_metadata.set(MetadataEntry::of("general.architecture", "mystery"));
  EXPECT_ERROR(lora_from_diff(unknown, ggufs.tuned), Errc::unsupported, "not known for this architecture");
}

TEST(LoraFromDiff, SaysIfThereIsNothingToFind) {
  Models models;
  models.add("a.weight", {2, 2}, {1, 2, 3, 4}, {0, 0, 0, 0});
  EXPECT_ERROR(lora_from_diff(models.base, models.tuned), Errc::mismatch, "no matrix differs");
  EXPECT_ERROR(lora_from_diff(models.base, models.tuned, {.rank = 0}), Errc::invalid_argument, "at least 1");
  models.add("b.weight", {1, 2}, {1, 2}, {INFINITY, 0});
  EXPECT_ERROR(lora_from_diff(models.base, models.tuned), Errc::mismatch, "tensor \"b.weight\" is not finite");
}

TEST(LoraFromDiff, RefusesADangerousCheckpoint) {
  Models models;
  models.add("a.weight", {2, 2}, {1, 2, 3, 4}, {1, 0, 0, 0});
  models.tuned.dangerous.push_back({"os", "system", 3, "", Verdict::dangerous, "runs shell commands"});
  EXPECT_ERROR(lora_from_diff(models.base, models.tuned), Errc::unsafe, "os.system");
  EXPECT_NO_THROW(lora_from_diff(models.base, models.tuned, {.allow_dangerous = true}));
}

}  // namespace
}  // namespace ballast
