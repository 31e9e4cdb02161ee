#include <ballast/adapter_changes.hpp>

#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace ballast {
namespace {

Tensor matrix(Shape shape, const std::vector<float>& values) {
  return Tensor::from_values<float>(DType::f32, std::move(shape), values);
}

// A LoRA of rank 2 and scaling 2 at "l.0.q", whose B·A is a diagonal of 3 and 4.
Adapter diagonal_lora() {
  Adapter adapter;
  adapter.config = AdapterConfig::parse(R"({"peft_type": "LORA", "r": 2, "lora_alpha": 4})");
  adapter.tensors.insert("base_model.model.l.0.q.lora_A.weight", matrix({2, 3}, {1, 0, 0, 0, 1, 0}));
  adapter.tensors.insert("base_model.model.l.0.q.lora_B.weight", matrix({4, 2}, {3, 0, 0, 4, 0, 0, 0, 0}));
  return adapter;
}

TEST(AdapterChanges, HaveTheNormOfTheProduct) {
  const auto changes = adapter_changes(diagonal_lora());
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_EQ(changes[0].module, "l.0.q");
  EXPECT_EQ(changes[0].rank, 2);
  EXPECT_EQ(changes[0].alpha, 4);
  EXPECT_EQ(changes[0].scaling, 2);
  EXPECT_DOUBLE_EQ(changes[0].norm, 10);
  EXPECT_FALSE(changes[0].base_norm);
  EXPECT_FALSE(changes[0].share());
}

TEST(AdapterChanges, HaveTheRankThatIsReallyUsed) {
  const double first = 16.0 / 25, second = 9.0 / 25;
  const double entropy = -first * std::log(first) - second * std::log(second);
  EXPECT_NEAR(adapter_changes(diagonal_lora())[0].effective_rank, std::exp(entropy), 1e-9);
}

TEST(AdapterChanges, OfAZeroAdapterHaveNoRank) {
  Adapter adapter = diagonal_lora();
  adapter.tensors.replace("base_model.model.l.0.q.lora_B.weight", matrix({4, 2}, std::vector<float>(8)));
  const auto changes = adapter_changes(adapter);
  EXPECT_EQ(changes[0].norm, 0);
  EXPECT_EQ(changes[0].effective_rank, 0);
}

TEST(AdapterChanges, AreSharesOfTheWeightsOfABase) {
  StateDict weights;
  weights.insert("l.0.q.weight", matrix({4, 3}, {5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
  const Checkpoint base(weights);
  const auto changes = adapter_changes(diagonal_lora(), &base);
  EXPECT_DOUBLE_EQ(changes[0].base_norm.value(), 5);
  EXPECT_DOUBLE_EQ(changes[0].share().value(), 2);
}

TEST(AdapterChanges, WithValuesThatAreNotFiniteAreNotNumbers) {
  Adapter adapter = diagonal_lora();
  adapter.tensors.replace("base_model.model.l.0.q.lora_A.weight", matrix({2, 3}, {NAN, 0, 0, 0, 1, 0}));
  const auto changes = adapter_changes(adapter);
  EXPECT_TRUE(std::isnan(changes[0].effective_rank));
}

TEST(AdapterChanges, OfMatricesThatDoNotFitAreZero) {
  Adapter adapter = diagonal_lora();
  adapter.tensors.replace("base_model.model.l.0.q.lora_B.weight", matrix({4, 3}, std::vector<float>(12, 1)));
  EXPECT_EQ(adapter_changes(adapter)[0].norm, 0);
}

}  // namespace
}  // namespace ballast
