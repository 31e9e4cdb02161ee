// Adapters whose tensors do not fit each other or the weight are refused, before a byte is read or written past the end
// of a tensor.
#include <ballast/merge.hpp>

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/adapter_parts.hpp"
#include "support/expect_error.hpp"
#include "support/tensor_values.hpp"

namespace ballast {
namespace {

using Parts = std::vector<std::pair<std::string, Shape>>;

// A merged weight is computed when it is read, so the tests read it.
std::vector<float> merged_values(const std::string& type, const Parts& parts, const Shape& weight,
                                 const std::string& fields = R"(, "topk": 2)", int rank = 4) {
  Adapter adapter;
  adapter.config.fields =
      Json::parse(R"({"peft_type": ")" + type + R"(", "alpha": 4, "randlora_alpha": 1)" + fields + "}");
  adapter.config.fields.set("r", rank);
  for (const auto& [name, shape] : parts) {
    const bool is_shared = name == "vblora_vector_bank";
    adapter.tensors.insert((is_shared ? "base_model." : "base_model.model.m.") + name, test::counting(shape, 0));
  }
  Checkpoint base;
  base.tensors.insert("m.weight", test::counting(weight));
  return test::values_of(merge(base, {adapter}).at("m.weight"));
}

struct HostileCase {
  std::string what, type;
  Parts parts;
  Shape weight;
  std::string message, fields = R"(, "topk": 2)";
};

void expect_refused(const std::vector<HostileCase>& cases, Errc code = Errc::mismatch) {
  for (const HostileCase& hostile : cases) {
    SCOPED_TRACE(hostile.what);
    EXPECT_ERROR(merged_values(hostile.type, hostile.parts, hostile.weight, hostile.fields), code, hostile.message);
  }
}

Parts hadamard_parts(const Shape& a, const Shape& b) {
  return {{"hada_w1_a", {8, 4}}, {"hada_w1_b", {4, 16}}, {"hada_w2_a", a}, {"hada_w2_b", b}};
}

TEST(HostileMerge, RefusesProductsOfAnotherSizeThanTheWeight) {
  expect_refused({
      {"a second product that is too wide",
       "LOHA",
       hadamard_parts({8, 1}, {1, 1000}),
       {8, 16},
       "with one of 8 by 1000"},
      {"one that is too small", "LOHA", hadamard_parts({1, 1}, {1, 1}), {8, 16}, "with one of 1 by 1"},
      {"two products of another size", "LOHA", hadamard_parts({8, 1}, {1, 16}), {8, 17}, "by a matrix of 8 by 16"},
      {"a factor without dimensions", "LOHA", hadamard_parts({}, {1, 16}), {8, 16}, "hada_w2_a"},
      {"an embedding of more values",
       "HIRA",
       {{"hira_embedding_A", {4, 8}}, {"hira_embedding_B", {1000, 4}}},
       {8, 16},
       "8 tokens of 1000 values"},
      {"an embedding of fewer tokens",
       "HIRA",
       {{"hira_embedding_A", {4, 2}}, {"hira_embedding_B", {16, 4}}},
       {8, 16},
       "2 tokens of 16 values"},
      {"half of an embedding without dimensions",
       "HIRA",
       {{"hira_embedding_A", {4, 8}}, {"hira_embedding_B", {}}},
       {8, 16},
       "hira_embedding_B"},
  });
}

TEST(HostileMerge, RefusesToDivideByNothing) {
  expect_refused({
      {"a core of no ranks",
       "LOHA",
       {{"hada_w1_a", {0, 8}},
        {"hada_w1_b", {0, 16}},
        {"hada_t1", {0, 0, 1, 1}},
        {"hada_w2_a", {8, 1}},
        {"hada_w2_b", {1, 16}}},
       {8, 16},
       "hada_t1"},
      {"the same of LoKr",
       "LOKR",
       {{"lokr_w1", {2, 2}}, {"lokr_w2_a", {0, 4}}, {"lokr_w2_b", {0, 8}}, {"lokr_t2", {0, 0, 1, 1}}},
       {8, 16},
       "lokr_t2"},
      {"a matrix of any size out of nothing",
       "LOKR",
       {{"lokr_w1", {2, 2}}, {"lokr_w2_a", {4, 0}}, {"lokr_w2_b", {0, 8}}},
       {8, 16},
       "lokr_w2_a"},
      {"a weight of no inputs", "IA3", {{"ia3_l", {1, 0}}}, {4, 0}, "has the shape [4, 0] and no values"},
  });
}

// These weights are stored transposed.
TEST(HostileMerge, TransposesProductsWithTheWeight) {
  const Parts hadamard = {{"hada_w1_a", {2, 1}}, {"hada_w1_b", {1, 3}}, {"hada_w2_a", {2, 1}}, {"hada_w2_b", {1, 3}}};
  EXPECT_EQ(merged_values("LOHA", hadamard, {2, 3}), (std::vector<float>{1, 2, 3, 4, 6, 10}));
  EXPECT_EQ(merged_values("LOHA", hadamard, {3, 2}), (std::vector<float>{1, 2, 3, 5, 5, 10}));
  const Parts kronecker = {{"lokr_w1", {1, 2}}, {"lokr_w2", {2, 1}}};  // [[0, 0], [0, 1]]
  EXPECT_EQ(merged_values("LOKR", kronecker, {2, 2}), (std::vector<float>{1, 2, 3, 5}));
  const Parts wide = {{"lokr_w1", {1, 3}}, {"lokr_w2", {2, 1}}};  // [[0, 0, 0], [0, 1, 2]]
  EXPECT_EQ(merged_values("LOKR", wide, {3, 2}), (std::vector<float>{1, 2, 3, 5, 5, 8}));
}

Parts bank_parts(const Shape& indices, const Shape& weights) {
  return {{"vblora_vector_bank", {16, 4}},
          {"vblora_logits_A_topk_indices", indices},
          {"vblora_logits_A_topk_weights", weights},
          {"vblora_logits_B_topk_indices", {2, 4, 2}},
          {"vblora_logits_B_topk_weights", {2, 4, 1}}};
}

TEST(HostileMerge, RefusesChoicesOfAnotherNumberThanTheConfigurationSays) {
  EXPECT_EQ(merged_values("VBLORA", bank_parts({4, 2, 2}, {4, 2, 1}), {8, 8}).size(), 64U);
  expect_refused({
      {"more indices", "VBLORA", bank_parts({4, 2, 3}, {4, 2, 2}), {8, 8}, "vblora_logits_A_topk_indices"},
      {"fewer weights", "VBLORA", bank_parts({4, 2, 2}, {4, 2, 0}), {8, 8}, "vblora_logits_A_topk_weights"},
      {"weights of other rows", "VBLORA", bank_parts({4, 2, 2}, {4, 1, 1}), {8, 8}, "vblora_logits_A_topk_weights"},
      {"no indices", "VBLORA", bank_parts({4, 2, 0}, {4, 2, 0}), {8, 8}, "chooses no vectors"},
      {"no dimensions", "VBLORA", bank_parts({}, {}), {8, 8}, "chooses no vectors"},
      {"no logits",
       "VBLORA",
       {{"vblora_vector_bank", {16, 4}}, {"vblora_logits_A", {4, 2, 0}}, {"vblora_logits_B", {2, 4, 0}}},
       {8, 8},
       "chooses no vectors"},
      {"no vectors",
       "VBLORA",
       {{"vblora_vector_bank", {0, 4}}, {"vblora_logits_A", {4, 2, 3}}, {"vblora_logits_B", {2, 4, 3}}},
       {8, 8},
       "vblora_vector_bank has no vectors"},
  });
  const Parts logits = {
      {"vblora_vector_bank", {16, 4}}, {"vblora_logits_A", {4, 2, 16}}, {"vblora_logits_B", {2, 4, 16}}};
  expect_refused({{"topk 0", "VBLORA", logits, {8, 8}, "\"topk\"", R"(, "topk": 0)"}}, Errc::malformed);
}

Parts butterfly_parts(std::uint64_t factors, std::uint64_t blocks, std::uint64_t size) {
  return {{"boft_R", {factors, blocks, size, size}}, {"boft_s", {4, 1}}};
}

TEST(HostileMerge, RefusesButterfliesWhoseFactorsDoNotPair) {
  EXPECT_EQ(merged_values("BOFT", butterfly_parts(2, 2, 4), {4, 8}).size(), 32U);
  EXPECT_EQ(merged_values("BOFT", butterfly_parts(1, 7, 1), {4, 7}).size(), 28U);
  expect_refused({
      {"blocks of one", "BOFT", butterfly_parts(2, 8, 1), {4, 8}, "2 factors of a butterfly"},
      {"blocks of an odd size", "BOFT", butterfly_parts(2, 2, 3), {4, 6}, "2 factors of a butterfly"},
      {"an odd number of blocks", "BOFT", butterfly_parts(2, 7, 4), {4, 28}, "a multiple of 2"},
      {"more factors than blocks", "BOFT", butterfly_parts(12, 2047, 2), {4, 4094}, "a multiple of 2048"},
      {"more factors than bits", "BOFT", butterfly_parts(65, 2, 2), {4, 4}, "2^63"},
      {"no factors", "BOFT", butterfly_parts(0, 2, 2), {4, 4}, "2 blocks of 2"},
  });
}

TEST(HostileMerge, RefusesBasesOfAnotherShape) {
  const auto bases = [](const Shape& a, const Shape& b) {
    return Parts{{"randlora_lambda", {4, 2}}, {"randlora_gamma", {2, 8}}, {"randlora_A", a}, {"randlora_B", b}};
  };
  EXPECT_EQ(merged_values("RANDLORA", bases({4, 1, 8}, {8, 2, 4}), {8, 8}).size(), 64U);
  expect_refused({
      {"nothing in the middle", "RANDLORA", bases({4, 0, 8}, {8, 2, 4}), {8, 8}, "[4, 0, 8]"},
      {"more in the middle", "RANDLORA", bases({4, 2, 8}, {8, 2, 4}), {8, 8}, "[4, 2, 8]"},
      {"no rows and very many bases", "RANDLORA", bases({4, 1, 8}, {0, std::uint64_t{1} << 61, 4}), {8, 8}, "[0, "},
      {"too few rows", "RANDLORA", bases({4, 1, 8}, {7, 2, 4}), {8, 8}, "too small"},
  });
}

TEST(HostileMerge, RefusesBlocksOfNoRank) {
  const Parts parts = {{"gralora_A", {8, 1, 0}}, {"gralora_B", {8, 0, 1}}};
  expect_refused({{"blocks", "GRALORA", parts, {8, 8}, "has the shape [8, 1, 0]"}});
}

// With a rank of 0, nothing is added and nothing is read.
TEST(HostileMerge, AddsNothingIfNothingWasChosen) {
  Parts parts = bank_parts({0, 2, 2}, {0, 2, 1});
  parts[3].second = {2, 0, 2};
  parts[4].second = {2, 0, 1};
  const std::vector<float> merged = merged_values("VBLORA", parts, {8, 8}, R"(, "topk": 2)", 0);
  EXPECT_EQ(merged, test::values_of(test::counting({8, 8})));
}

TEST(HostileMerge, RefusesASeriesWithoutEnd) {
  expect_refused({{"terms",
                   "OFT",
                   {{"oft_R.weight", {1, 6}}},
                   {4, 8},
                   "a series of 1000000000000000 terms",
                   R"(, "num_cayley_neumann_terms": 1000000000000000)"}},
                 Errc::unsupported);
}

}  // namespace
}  // namespace ballast
