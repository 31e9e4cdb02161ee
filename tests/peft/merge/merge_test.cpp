// merge() on numbers that can be computed by hand, and on adapters that do not fit.
#include <ballast/merge.hpp>
#include <ballast/save.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "builders/temp_dir.hpp"
#include "support/expect_error.hpp"
#include "support/tensor_values.hpp"

namespace ballast {
namespace {

Tensor values(Shape shape, const std::vector<float>& numbers, DType dtype = DType::f32) {
  return Tensor::from_values<float>(DType::f32, std::move(shape), numbers).to(dtype);
}

Checkpoint base_of(std::initializer_list<std::pair<const char*, Tensor>> tensors) {
  Checkpoint base;
  for (const auto& [name, tensor] : tensors) base.tensors.insert(name, tensor);
  return base;
}

Adapter adapter_of(const char* config, std::initializer_list<std::pair<const char*, Tensor>> tensors) {
  Adapter adapter;
  adapter.config.fields = Json::parse(config);
  for (const auto& [name, tensor] : tensors) adapter.tensors.insert(std::string("base_model.model.") + name, tensor);
  adapter.source = "adapter";
  return adapter;
}

constexpr const char* kLora = R"({"peft_type": "LORA", "r": 1, "lora_alpha": 2})";

// Gives W + 2 [1; 2] [3 4] for W = [[1, 1], [1, 1]].
Adapter small_lora() {
  return adapter_of(kLora,
                    {{"lin.lora_A.weight", values({1, 2}, {3, 4})}, {"lin.lora_B.weight", values({2, 1}, {1, 2})}});
}
Checkpoint small_base(DType dtype = DType::f32) {
  return base_of({{"lin.weight", values({2, 2}, {1, 1, 1, 1}, dtype)}, {"lin.bias", values({2}, {1, 2}, dtype)}});
}

TEST(Merge, AddsAProductTimesAlphaOverRank) {
  const Checkpoint merged = merge(small_base(), {small_lora()});
  EXPECT_EQ(test::values_of(merged.at("lin.weight")), (std::vector<float>{7, 9, 13, 17}));
  EXPECT_EQ(test::values_of(merged.at("lin.bias")), (std::vector<float>{1, 2}));
}

TEST(Merge, KeepsTheDtypeOfTheBase) {
  for (const DType dtype : {DType::bf16, DType::f16, DType::f64, DType::f8_e5m2}) {
    const Checkpoint merged = merge(small_base(dtype), {small_lora()});
    EXPECT_EQ(merged.at("lin.weight").dtype(), dtype);
    if (dtype == DType::f8_e5m2) continue;  // F8_E5M2 has no 9
    EXPECT_EQ(test::values_of(merged.at("lin.weight")), (std::vector<float>{7, 9, 13, 17}));
  }
}

TEST(Merge, RoundsOnceIfTheResultIsCast) {
  const Checkpoint base = base_of(
      {{"lin.weight", values({2, 2}, {60'000, 1, 1, 1}, DType::f16)}, {"lin.bias", values({2}, {1, 2}, DType::f16)}});
  const Adapter adapter = adapter_of(R"({"peft_type": "LORA", "r": 1, "lora_alpha": 1, "modules_to_save": ["head"]})",
                                     {{"lin.lora_A.weight", values({1, 2}, {10'000, 0.0001F})},
                                      {"lin.lora_B.weight", values({2, 1}, {1, 2})},
                                      {"head.weight", values({1}, {0.1F})}});
  const OverflowCounter counter;
  const auto merged = [&](DType dtype) {
    Checkpoint with_head = base;
    with_head.tensors.insert("head.weight", values({1}, {5}, DType::f16));
    return merge(with_head, {adapter}, {.dtype = dtype});
  };
  const Checkpoint wide = merged(DType::f32);
  EXPECT_EQ(test::values_of(wide.at("lin.weight")), (std::vector<float>{70'000, 1.0001F, 20'001, 1.0002F}));
  EXPECT_EQ(test::values_of(wide.at("head.weight")), (std::vector<float>{0.1F}));
  EXPECT_EQ(wide.at("lin.bias").dtype(), DType::f32);
  EXPECT_EQ(test::values_of(merged(DType::bf16).at("lin.weight"))[0], 70'144);  // the nearest that BF16 has
  EXPECT_EQ(counter.total().count, 0u);
  test::values_of(merged(DType::f16).at("lin.weight"));
  EXPECT_EQ(counter.total().count, 1u);
  EXPECT_EQ(counter.total().dtype, DType::f16);
}

TEST(Merge, DoesNotEncodeBlocksThatTheResultDoesNotHave) {
  const Tensor blocks = values({1, 32}, std::vector<float>(32, 1)).to(DType::q4_0);
  const Adapter adapter = adapter_of(kLora, {{"lin.lora_A.weight", values({1, 32}, std::vector<float>(32, 0.001F))},
                                             {"lin.lora_B.weight", values({1, 1}, {1})}});
  const Checkpoint merged = merge(base_of({{"lin.weight", blocks}}), {adapter}, {.dtype = DType::f32});
  const float before = test::values_of(blocks.to(DType::f32))[0];
  EXPECT_EQ(test::values_of(merged.at("lin.weight")), std::vector<float>(32, before + 0.002F));
}

TEST(Merge, NamesTheDtypeThatValuesDidNotFitOnTheWayToAnother) {
  const Checkpoint base = base_of({{"lin.weight", values({2, 2}, {60'000, 1, 1, 1}, DType::f16)}});
  Adapter adapter = small_lora();
  adapter.tensors.replace("base_model.model.lin.lora_A.weight", values({1, 2}, {30'000, 4}));
  const Checkpoint merged = merge(base, {adapter}, {.peft_exact = true, .dtype = DType::f32});
  const test::TempDir folder;
  const SaveReport report = save(merged, folder / "out.safetensors");
  ASSERT_EQ(report.overflows.size(), 1u);
  EXPECT_EQ(report.overflows[0].dtype, DType::f16) << "PEFT rounds to it, and the cast comes afterwards";
}

TEST(Merge, WeighsAdapters) {
  const Checkpoint merged = merge(small_base(), {small_lora(), small_lora()}, {{0.5, 2}, false, false});
  EXPECT_EQ(test::values_of(merged.at("lin.weight")), (std::vector<float>{16, 21, 31, 41}));
}

TEST(Merge, UndoesAnAdapter) {
  const Checkpoint merged = merge(small_base(), {small_lora()});
  const Checkpoint back = merge(merged, {small_lora()}, {{}, false, true});
  EXPECT_EQ(test::values_of(back.at("lin.weight")), (std::vector<float>{1, 1, 1, 1}));
}

TEST(Merge, AcceptsNamesWithoutThePrefix) {
  Adapter adapter = small_lora();
  StateDict tensors;
  for (const auto& [name, tensor] : adapter.tensors) tensors.insert(name.substr(17), tensor);
  adapter.tensors = std::move(tensors);
  EXPECT_EQ(test::values_of(merge(small_base(), {adapter}).at("lin.weight")), (std::vector<float>{7, 9, 13, 17}));
}

TEST(Merge, DecodesAndEncodesBlocks) {
  std::vector<float> ones(64, 1), a(32, 0), b{1, 0};
  a[0] = 0.5;
  const Checkpoint base = base_of({{"lin.weight", values({2, 32}, ones).to(DType::q8_0)}});
  const Adapter adapter =
      adapter_of(kLora, {{"lin.lora_A.weight", values({1, 32}, a)}, {"lin.lora_B.weight", values({2, 1}, b)}});
  const Checkpoint merged = merge(base, {adapter});
  EXPECT_EQ(merged.at("lin.weight").dtype(), DType::q8_0);
  const std::vector<float> found = test::values_of(merged.at("lin.weight"));
  EXPECT_NEAR(found[0], 2, 0.01);
  EXPECT_NEAR(found[1], 1, 0.01);
  EXPECT_NEAR(found[32], 1, 0.01);
}

TEST(Merge, DividesByTheNormOfEachOutputInDora) {
  Adapter adapter = small_lora();
  adapter.tensors.insert("base_model.model.lin.lora_magnitude_vector", values({2}, {1, 2}));
  const Checkpoint base = base_of({{"lin.weight", values({2, 2}, {-3, -4, -12, -12})}});  // becomes 3 4, 0 4
  const std::vector<float> found = test::values_of(merge(base, {adapter}).at("lin.weight"));
  EXPECT_NEAR(found[0], 0.6, 1e-6);
  EXPECT_NEAR(found[1], 0.8, 1e-6);
  EXPECT_EQ(found[2], 0);
  EXPECT_EQ(found[3], 2);
  EXPECT_ERROR(merge(base, {adapter}, {{}, false, true}), Errc::unsupported, "cannot be taken out again");
}

TEST(Merge, ScalesRowsOrColumnsAndBackInIa3) {
  const auto ia3 = [](Tensor scales) {
    return adapter_of(R"({"peft_type": "IA3"})", {{"lin.ia3_l", std::move(scales)}});
  };
  const Checkpoint by_output = merge(small_base(), {ia3(values({2, 1}, {2, 4}))});
  EXPECT_EQ(test::values_of(by_output.at("lin.weight")), (std::vector<float>{2, 2, 4, 4}));
  EXPECT_EQ(test::values_of(by_output.at("lin.bias")), (std::vector<float>{2, 8}));
  const Checkpoint by_input = merge(small_base(), {ia3(values({1, 2}, {2, 4}))});
  EXPECT_EQ(test::values_of(by_input.at("lin.weight")), (std::vector<float>{2, 4, 2, 4}));
  EXPECT_EQ(test::values_of(by_input.at("lin.bias")), (std::vector<float>{1, 2}));
  const Checkpoint back = merge(by_output, {ia3(values({2, 1}, {2, 4}))}, {{}, false, true});
  EXPECT_EQ(test::values_of(back.at("lin.weight")), (std::vector<float>{1, 1, 1, 1}));
  const Checkpoint half = merge(small_base(), {ia3(values({1, 2}, {2, 4}))}, {{0.5}, false, false});
  EXPECT_EQ(test::values_of(half.at("lin.weight")), (std::vector<float>{1.5, 2.5, 1.5, 2.5}));
}

TEST(Merge, KeepsTiedTensorsTied) {
  Checkpoint base;
  const Tensor tied = values({2, 2}, {1, 1, 1, 1});
  base.tensors.insert("lin.weight", tied);
  base.tensors.insert("head.weight", tied);
  const Checkpoint merged = merge(base, {small_lora()});
  EXPECT_EQ(merged.at("head.weight").storage(), merged.at("lin.weight").storage());
}

TEST(Merge, SaysIfOnlyOneOfTwoEqualTablesIsChanged) {
  const Tensor table = values({2, 2}, {1, 1, 1, 1}), copy = values({2, 2}, {1, 1, 1, 1}),
               other = values({2, 2}, {1, 1, 1, 2});
  const Adapter on_head = adapter_of(
      kLora, {{"lm_head.lora_A.weight", values({1, 2}, {3, 4})}, {"lm_head.lora_B.weight", values({2, 1}, {1, 2})}});
  const Adapter on_words = adapter_of(kLora, {{"model.embed_tokens.lora_embedding_A", values({1, 2}, {3, 4})},
                                              {"model.embed_tokens.lora_embedding_B", values({2, 1}, {1, 2})}});
  const Adapter whole = adapter_of(R"({"peft_type": "LORA", "r": 1, "lora_alpha": 2, "modules_to_save": ["lm_head"]})",
                                   {{"lm_head.weight", values({2, 2}, {5, 5, 5, 5})}});
  for (const Adapter* adapter : {&on_head, &on_words, &whole}) {
    const auto notes =
        merge(base_of({{"model.embed_tokens.weight", table}, {"lm_head.weight", copy}}), {*adapter}).notes;
    ASSERT_EQ(notes.size(), 1u);
    EXPECT_NE(notes[0].text.find("which were equal in the base"), std::string::npos) << notes[0].text;
    EXPECT_TRUE(
        merge(base_of({{"model.embed_tokens.weight", table}, {"lm_head.weight", other}}), {*adapter}).notes.empty());
  }
  EXPECT_TRUE(merge(base_of({{"model.embed_tokens.weight", table}, {"lm_head.weight", copy}}), {on_head, on_words})
                  .notes.empty())
      << "both are changed";
  EXPECT_TRUE(
      merge(base_of({{"model.embed_tokens.weight", table}, {"lm_head.weight", table}}), {on_head}).notes.empty())
      << "one tensor with two names";
}

// Any range of bytes can be read, whatever rows it cuts.
TEST(Merge, GivesTheSameBytesInAnyPieces) {
  std::vector<float> numbers(300 * 7), a(2 * 7), b(300 * 2);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i % 13) - 6;
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i);
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i % 5);
  const Adapter adapter =
      adapter_of(R"({"peft_type": "LORA", "r": 2, "lora_alpha": 1})",
                 {{"lin.lora_A.weight", values({2, 7}, a)}, {"lin.lora_B.weight", values({300, 2}, b)}});
  const Tensor merged =
      merge(base_of({{"lin.weight", values({300, 7}, numbers, DType::bf16)}}), {adapter}).at("lin.weight");
  std::vector<std::byte> whole(merged.nbytes()), piece(97);
  merged.read(0, whole);
  for (std::size_t at = 0; at + piece.size() <= whole.size(); at += 53) {
    merged.read(at, piece);
    EXPECT_EQ(std::memcmp(piece.data(), whole.data() + at, piece.size()), 0) << at;
  }
}

// The last bits of a product depend on how many rows are computed at once, and small numbers do not show it.
TEST(Merge, GivesTheSameBitsOfRoundedProductsInAnyPieces) {
  const auto noise = [](std::uint64_t rows, std::uint64_t columns, std::uint32_t state) {
    std::vector<float> numbers(rows * columns);
    for (float& number : numbers) {
      state = state * 1664525 + 1013904223;
      number = static_cast<float>(static_cast<std::int32_t>(state)) / 2e9F;
    }
    return values({rows, columns}, numbers);
  };
  const Adapter adapter =
      adapter_of(R"({"peft_type": "LORA", "r": 8, "lora_alpha": 16})",
                 {{"lin.lora_A.weight", noise(8, 512, 1)}, {"lin.lora_B.weight", noise(1000, 8, 2)}});
  const Tensor merged = merge(base_of({{"lin.weight", noise(1000, 512, 3)}}), {adapter}).at("lin.weight");
  std::vector<std::byte> whole(merged.nbytes()), pieces(merged.nbytes());
  merged.read(0, whole);
  for (const std::uint64_t size : {65'536u, 100'000u, 1'000'001u}) {
    for (std::uint64_t done = 0; done < pieces.size(); done += size)
      merged.read(done, std::span(pieces).subspan(done, std::min<std::uint64_t>(size, pieces.size() - done)));
    EXPECT_TRUE(pieces == whole) << size;
  }
}

TEST(Merge, SaysWhatItKeepsInMemory) {
  const Checkpoint merged = merge(small_base(DType::bf16), {small_lora()});
  EXPECT_EQ(merge_memory_bytes(merged.at("lin.weight")), 4 * sizeof(float));
  EXPECT_EQ(merge_memory_bytes(merged.at("lin.weight").to(DType::f16)), 4 * sizeof(float));
  EXPECT_EQ(merge_memory_bytes(merged.at("lin.bias")), 0);
}

TEST(Merge, IsPlannedWithTheMemoryThatItKeeps) {
  test::TempDir dir;
  const auto planned = [&](const Checkpoint& checkpoint) {
    return plan_save(checkpoint, dir / "x.safetensors", {.threads = 1}).memory_bytes;
  };
  const Checkpoint merged = merge(small_base(), {small_lora()});
  EXPECT_EQ(planned(merged), planned(small_base()) + merge_memory_bytes(merged.at("lin.weight")));

  Checkpoint tied = merged;
  tied.tensors.insert("head.weight", tied.at("lin.weight"));
  Checkpoint plain = small_base();
  plain.tensors.insert("head.weight", plain.at("lin.weight"));
  EXPECT_EQ(planned(tied), planned(plain) + merge_memory_bytes(merged.at("lin.weight"))) << "once for both names";
}

TEST(Merge, TakesTheDefaultsOfPeftForWhatTheConfigurationDoesNotSay) {
  Adapter adapter = small_lora();
  adapter.config.fields = Json::parse(R"({"peft_type": "LORA", "r": 1})");  // lora_alpha is 8
  EXPECT_EQ(test::values_of(merge(small_base(), {adapter}).at("lin.weight")), (std::vector<float>{25, 33, 49, 65}));
  adapter.config.fields = Json::parse(R"({"peft_type": "LORA", "r": 1, "lora_alpha": null})");
  EXPECT_EQ(test::values_of(merge(small_base(), {adapter}).at("lin.weight")), (std::vector<float>{25, 33, 49, 65}));
  const Adapter loha = adapter_of(R"({"peft_type": "LOHA", "r": 4})",  // alpha is 8, so the scaling is 2
                                  {{"lin.hada_w1_a", values({2, 1}, {1, 1})},
                                   {"lin.hada_w1_b", values({1, 2}, {1, 2})},
                                   {"lin.hada_w2_a", values({2, 1}, {1, 1})},
                                   {"lin.hada_w2_b", values({1, 2}, {1, 1})}});
  EXPECT_EQ(test::values_of(merge(small_base(), {loha}).at("lin.weight")), (std::vector<float>{3, 5, 3, 5}));
}

// The samplers and projections of these two are for training alone.
TEST(Merge, MergesMonteCloraAndVeloraAsThePlainLorasThatTheyAreAfterTraining) {
  Adapter adapter = small_lora();
  adapter.config.fields.set("monteclora_config", Json::parse(R"({"num_samples": 8})"));
  adapter.tensors.insert("base_model.model.lin.lora_monteclora_sampler.std_prior", values({1}, {1}));
  EXPECT_EQ(test::values_of(merge(small_base(), {adapter}).at("lin.weight")), (std::vector<float>{7, 9, 13, 17}));
  adapter = small_lora();
  adapter.config.fields.set("velora_config", Json::parse(R"({"num_groups": 1})"));
  adapter.tensors.insert("base_model.model.lin.lora_velora_embed", values({2}, {1, 1}));
  EXPECT_EQ(test::values_of(merge(small_base(), {adapter}).at("lin.weight")), (std::vector<float>{7, 9, 13, 17}));
}

TEST(Merge, RefusesVariantsOfLoraThatNoWeightCanHold) {
  struct Row {
    const char *field, *asked_for, *not_asked_for, *why;
  };
  const Row rows[] = {
      {"alora_invocation_tokens", "[1]", "[]", "after its invocation"},
      {"arrow_config", R"({"top_k": 2})", "null", "for each token"},
      {"use_bdlora", R"({"nblocks": 2})", "{}", "for several devices"},
      {"use_qalora", "true", "false", "zero points"},
  };
  for (const Row& row : rows) {
    Adapter adapter = small_lora();
    adapter.config.fields.set(row.field, Json::parse(row.asked_for));
    EXPECT_ERROR(merge(small_base(), {adapter}), Errc::unsupported, row.why);
    adapter.config.fields.set(row.field, Json::parse(row.not_asked_for));
    EXPECT_NO_THROW(merge(small_base(), {adapter})) << row.field;
  }
}

TEST(Merge, AddsModulesThatWereSavedWholeAndNothingElse) {
  Adapter adapter = adapter_of(R"({"peft_type": "LORA", "r": 1, "lora_alpha": 2, "modules_to_save": ["score"]})",
                               {{"score.weight", values({1, 2}, {5, 6})}});
  const Checkpoint merged = merge(small_base(), {adapter});
  EXPECT_EQ(test::values_of(merged.at("score.weight")), (std::vector<float>{5, 6}));
  EXPECT_EQ(merged.notes.size(), 1U);
}

struct BadCase {
  const char* what;
  const char* config;
  std::vector<std::pair<const char*, Tensor>> tensors;
  Errc code;
  const char* message;
};

TEST(Merge, RefusesAdaptersThatDoNotFit) {
  const Tensor a = values({1, 2}, {3, 4}), b = values({2, 1}, {1, 2});
  const std::vector<BadCase> cases = {
      {"another model", kLora, {{"linn.lora_A.weight", a}, {"linn.lora_B.weight", b}}, Errc::not_found, "linn.weight"},
      {"another size",
       kLora,
       {{"lin.lora_A.weight", values({1, 3}, {1, 2, 3})}, {"lin.lora_B.weight", b}},
       Errc::mismatch,
       "by a matrix of 2 by 3, but its weight has the shape [2, 2]"},
      {"another rank",
       R"({"peft_type": "LORA", "r": 4, "lora_alpha": 2})",
       {{"lin.lora_A.weight", a}, {"lin.lora_B.weight", b}},
       Errc::mismatch,
       "the configuration says rank 4 for module \"lin\", its tensors have 1"},
      {"ranks that differ",
       kLora,
       {{"lin.lora_A.weight", a}, {"lin.lora_B.weight", values({2, 2}, {1, 2, 3, 4})}},
       Errc::mismatch,
       "an A of rank 1 and a B of rank 2"},
      {"half of it", kLora, {{"lin.lora_A.weight", a}}, Errc::mismatch, "only one half of its LoRA"},
      {"alpha 0",
       R"({"peft_type": "LORA", "r": 1, "lora_alpha": 0})",
       {{"lin.lora_A.weight", a}, {"lin.lora_B.weight", b}},
       Errc::mismatch,
       "by 0"},
      {"rank 0",
       R"({"peft_type": "LORA", "r": 0, "lora_alpha": 1})",
       {{"lin.lora_A.weight", a}, {"lin.lora_B.weight", b}},
       Errc::mismatch,
       "the configuration says rank 0"},
      {"alpha that is not a number",
       R"({"peft_type": "LORA", "r": 1, "lora_alpha": "much"})",
       {{"lin.lora_A.weight", a}, {"lin.lora_B.weight", b}},
       Errc::malformed,
       "\"lora_alpha\""},
      {"a bias that is not there",
       kLora,
       {{"head.lora_A.weight", a}, {"head.lora_B.weight", b}, {"head.lora_B.bias", values({2}, {1, 2})}},
       Errc::mismatch,
       "which has none"},
      {"a tensor of nobody",
       kLora,
       {{"lin.lora_A.weight", a}, {"lin.lora_B.weight", b}, {"lin.lora_C.weight", a}},
       Errc::not_found,
       "lin.lora_C.weight"},
      {"no tensors", kLora, {}, Errc::not_found, "has no tensors"},
      {"tensors of another type", R"({"peft_type": "IA3"})", {{"lin.lora_A.weight", a}}, Errc::mismatch, "one of IA3"},
      {"an unknown type", R"({"peft_type": "LORRA"})", {}, Errc::unsupported, "LORRA"},
      {"no type", R"({})", {}, Errc::malformed, "no \"peft_type\""},
      {"a prompt", R"({"peft_type": "PROMPT_TUNING"})", {}, Errc::unsupported, "no weight can hold"},
      {"an expression that only Python knows",
       R"json({"peft_type": "LORA", "r": 1, "lora_alpha": 2, "rank_pattern": {"(?=x)": 1}})json",
       {{"lin.lora_A.weight", a}, {"lin.lora_B.weight", b}},
       Errc::unsupported,
       "(?=x)"},
      {"a DoRA without magnitudes",
       R"({"peft_type": "LORA", "r": 1, "lora_alpha": 2, "use_dora": true})",
       {{"lin.lora_A.weight", a}, {"lin.lora_B.weight", b}},
       Errc::mismatch,
       "but no lora_magnitude_vector"},
      {"magnitudes of another size",
       kLora,
       {{"lin.lora_A.weight", a}, {"lin.lora_B.weight", b}, {"lin.lora_magnitude_vector", values({3}, {1, 2, 3})}},
       Errc::mismatch,
       "3 magnitudes"},
  };
  for (const BadCase& bad : cases) {
    SCOPED_TRACE(bad.what);
    Adapter adapter = adapter_of(bad.config, {});
    for (const auto& [name, tensor] : bad.tensors)
      adapter.tensors.insert(std::string("base_model.model.") + name, tensor);
    Checkpoint base = small_base();
    base.tensors.insert("head.weight", values({2, 2}, {1, 1, 1, 1}));
    EXPECT_ERROR(merge(base, {adapter}), bad.code, bad.message);
  }
  EXPECT_HINT(merge(small_base(), {adapter_of(kLora, {{"linn.lora_A.weight", a}, {"linn.lora_B.weight", b}})}),
              "did you mean \"lin.weight\"?");
}

TEST(Merge, RefusesWeightsThatAreNotNumbersOrNotOneForEachAdapter) {
  EXPECT_ERROR(merge(small_base(), {small_lora()}, {{std::nan("")}, false, false}), Errc::invalid_argument, "nan");
  EXPECT_ERROR(merge(small_base(), {small_lora()}, {{1, 2}, false, false}), Errc::invalid_argument, "2 weights for 1");
}

}  // namespace
}  // namespace ballast
