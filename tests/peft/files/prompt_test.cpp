// Prompt methods whose encoders are more than one table, and prompts whose method nothing states.
#include <gtest/gtest.h>

#include <cmath>

#include "support/adapter_parts.hpp"
#include "support/expect_error.hpp"
#include "support/tensor_values.hpp"

namespace ballast {
namespace {

using test::config_of;
using test::counting;
using test::sorted_names;
using test::state_of;
using test::values_of;
using Names = std::vector<std::string>;

Tensor floats(Shape shape, const std::vector<float>& values) {
  return Tensor::from_values<float>(DType::f32, std::move(shape), values);
}

constexpr std::string_view kCpt = R"({"peft_type": "CPT", "token_dim": 2, "opt_projection_epsilon": 32,
    "opt_projection_format_epsilon": 64, "cpt_tokens_type_mask": [1, 2, 3, 4, 6, 1]})";
constexpr std::string_view kCartridge =
    R"({"peft_type": "CARTRIDGE", "num_virtual_tokens": 3, "num_frozen_tokens": 1})";

// A change is limited to 64 √(2 / 2048) = 2 for tokens of the format, to 1 for those of the input, to 0 for others.
TEST(Cpt, IsSavedWithTheChangeThatItLearned) {
  StateDict state;
  state.insert("prompt_encoder.default.embedding.weight", counting({6, 2}));
  state.insert("prompt_encoder.default.delta_embedding.weight", floats({6, 2}, {3, 4, 3, 4, 0, 1, 5, 5, 6, 8, 0, 0}));
  const StateDict file = get_adapter_state_dict(state, config_of(kCpt));
  EXPECT_EQ(sorted_names(file), Names({"prompt_embeddings"}));
  const std::vector<float> expected = {1 + 1.2f, 2 + 1.6f, 3 + 0.6f, 4 + 0.8f, 5, 7, 7, 8, 9 + 0.6f, 10 + 0.8f, 11, 12};
  const auto found = values_of(file.at("prompt_embeddings"));
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-5) << i;
}

TEST(Cpt, RefusesTablesAndTypesThatDoNotBelongTogether) {
  StateDict state;
  state.insert("prompt_encoder.default.embedding.weight", counting({6, 2}));
  state.insert("prompt_encoder.default.delta_embedding.weight", counting({5, 2}));
  EXPECT_ERROR(get_adapter_state_dict(state, config_of(kCpt)), Errc::mismatch, "delta_embedding has the shape [5, 2]");
  state.replace("prompt_encoder.default.embedding.weight", counting({5, 2}));
  EXPECT_ERROR(get_adapter_state_dict(state, config_of(kCpt)), Errc::mismatch, "not a list of 5 types");
}

TEST(Cpt, IsInjectedWithAChangeOfZero) {
  const StateDict base = state_of({{"model.embed_tokens.weight", {9, 2}}}),
                  file = state_of({{"prompt_embeddings", {6, 2}}});
  const StateDict state = set_adapter_state_dict(base, file, config_of(kCpt)).state;
  EXPECT_EQ(sorted_names(state),
            Names({"base_model.model.embed_tokens.weight", "prompt_encoder.default.delta_embedding.weight",
                   "prompt_encoder.default.embedding.weight", "word_embeddings.weight"}));
  EXPECT_EQ(values_of(state.at("prompt_encoder.default.delta_embedding.weight")), std::vector<float>(12));
  const StateDict back = get_adapter_state_dict(state, config_of(kCpt));
  EXPECT_EQ(values_of(back.at("prompt_embeddings")), values_of(file.at("prompt_embeddings")));
}

TEST(Cartridge, HasItsFirstTokensInATableOfTheirOwn) {
  const StateDict base = state_of({{"model.embed_tokens.weight", {9, 2}}}),
                  file = state_of({{"prompt_embeddings", {3, 8}}});
  const StateDict state = set_adapter_state_dict(base, file, config_of(kCartridge), "c").state;
  EXPECT_EQ(sorted_names(state), Names({"base_model.model.embed_tokens.weight", "prompt_encoder.c.frozen_embedding",
                                        "prompt_encoder.c.trainable_embedding", "word_embeddings.weight"}));
  EXPECT_EQ(state.at("prompt_encoder.c.frozen_embedding").shape(), (Shape{1, 8}));
  EXPECT_EQ(state.at("prompt_encoder.c.trainable_embedding").shape(), (Shape{2, 8}));
  const StateDict back = get_adapter_state_dict(state, config_of(kCartridge), "c");
  EXPECT_EQ(sorted_names(back), Names({"prompt_embeddings"}));
  EXPECT_EQ(values_of(back.at("prompt_embeddings")), values_of(file.at("prompt_embeddings")));
}

TEST(Cartridge, MayBeTrainedAsAWhole) {
  const AdapterConfig config = config_of(R"({"peft_type": "CARTRIDGE", "num_frozen_tokens": 0})");
  const StateDict file = state_of({{"prompt_embeddings", {3, 8}}});
  const StateDict state = set_adapter_state_dict({}, file, config).state;
  EXPECT_EQ(sorted_names(state), Names({"prompt_encoder.default.trainable_embedding"}));
  EXPECT_EQ(values_of(get_adapter_state_dict(state, config).at("prompt_embeddings")), values_of(file[0].tensor));
  EXPECT_EQ(set_adapter_state_dict({}, {}, config).missing, Names({"prompt_encoder.default.trainable_embedding"}));
}

TEST(Cartridge, SaysWhatIsWrong) {
  const StateDict file = state_of({{"prompt_embeddings", {3, 8}}});
  for (const char* frozen : {"4", "-1"}) {
    const AdapterConfig config =
        config_of(R"({"peft_type": "CARTRIDGE", "num_frozen_tokens": )" + std::string(frozen) + "}");
    EXPECT_ERROR(set_adapter_state_dict({}, file, config), Errc::mismatch, "the cartridge has 3 tokens");
  }
  EXPECT_ERROR(
      get_adapter_state_dict(state_of({{"prompt_encoder.default.embedding.weight", {3, 8}}}), config_of(kCartridge)),
      Errc::not_found, "of the type CARTRIDGE");
}

TEST(Prompt, IsRefusedIfItsConfigurationSaysAnotherSize) {
  const auto problem_of = [](const char* config, const Shape& shape) {
    Adapter adapter;
    adapter.config = config_of(config);
    adapter.tensors = state_of({{"prompt_embeddings", shape}});
    const std::vector<AdapterProblem> problems = find_problems(adapter);
    return problems.empty() ? std::string() : problems.front().text;
  };
  EXPECT_EQ(problem_of(R"({"peft_type": "CARTRIDGE", "num_virtual_tokens": 7})", {3, 8}),
            "the prompt has 3 tokens, the configuration says 7");
  EXPECT_EQ(problem_of(R"({"peft_type": "CARTRIDGE", "num_frozen_tokens": 4})", {3, 8}),
            "the prompt has 3 tokens, the configuration says 4");
  EXPECT_EQ(problem_of(R"({"peft_type": "CPT", "num_virtual_tokens": 3, "token_dim": 9})", {3, 8}),
            "the prompt has 8 numbers for each token, the configuration says 9");
  EXPECT_NE(problem_of(R"({"peft_type": "CPT", "num_virtual_tokens": 2.5})", {3, 8}), "") << "no half tokens";
  EXPECT_NE(problem_of(R"({"peft_type": "CPT"})", {3}), "") << "no matrix";
  EXPECT_EQ(problem_of(R"({"peft_type": "PREFIX_TUNING", "token_dim": 2, "num_layers": 2})", {3, 8}), "");
  EXPECT_NE(problem_of(R"({"peft_type": "PREFIX_TUNING", "token_dim": 2, "num_layers": 3})", {3, 8}), "");
  // A model with an encoder and a decoder has a prompt for each.
  EXPECT_EQ(problem_of(R"({"peft_type": "PROMPT_TUNING", "num_virtual_tokens": 3, "token_dim": 8,
                           "num_transformer_submodules": 2})",
                       {6, 8}),
            "");
}

TEST(PromptWithoutAConfiguration, HasNoTypeIfSeveralMethodsMayHaveMadeIt) {
  test::TempDir dir;
  Adapter adapter;
  adapter.config = config_of(R"({"peft_type": "PREFIX_TUNING"})");
  adapter.tensors = state_of({{"prompt_embeddings", {3, 8}}});
  save_adapter(adapter, dir / "prefix");
  std::filesystem::remove(dir / "prefix/adapter_config.json");
  const Adapter found = load_adapter(dir / "prefix");
  EXPECT_NE(found.notes.at(0).text.find("nothing says which"), std::string::npos);
  const AdapterSummary summary = summarize(found);
  EXPECT_EQ(summary.type, "");
  EXPECT_EQ(summary.possible_types, Names({"CARTRIDGE", "CPT", "P_TUNING", "PREFIX_TUNING", "PROMPT_TUNING"}));
  EXPECT_TRUE(summary.modules.empty());
  EXPECT_ERROR(check_adapter(found), Errc::unsupported, "nothing says which method made the prompt");
}

TEST(PromptWithoutAConfiguration, IsKnownIfOnlyOneMethodHasItsTensors) {
  test::TempDir dir;
  Adapter adapter;
  adapter.config = config_of(R"({"peft_type": "MULTITASK_PROMPT_TUNING"})");
  adapter.tensors =
      state_of({{"prompt_embeddings", {3, 8}}, {"prefix_task_cols", {2, 3, 1}}, {"prefix_task_rows", {2, 1, 8}}});
  save_adapter(adapter, dir / "tasks");
  std::filesystem::remove(dir / "tasks/adapter_config.json");
  EXPECT_EQ(summarize(load_adapter(dir / "tasks")).type, "MULTITASK_PROMPT_TUNING");
}

}  // namespace
}  // namespace ballast
