// Cases that the vectors do not have: names that mislead, wrappers of training, old releases, rare types.
#include <gtest/gtest.h>

#include "support/adapter_parts.hpp"
#include "support/expect_error.hpp"

namespace ballast {
namespace {

using test::config_of;
using test::sorted_names;
using test::state_of;
using Names = std::vector<std::string>;

Names got(const Names& state, std::string_view config, std::string_view adapter = "default",
          const GetAdapterOptions& options = {}) {
  std::vector<std::pair<std::string, Shape>> tensors;
  for (const std::string& name : state) tensors.emplace_back(name, Shape{2, 2});
  return sorted_names(get_adapter_state_dict(state_of(tensors), config_of(config), adapter, options));
}

constexpr std::string_view kLora = R"({"peft_type": "LORA"})";

TEST(GetAdapter, TellsAdaptersApartByWholeNames) {
  const Names state = {"base_model.model.q.lora_A.a.weight",
                       "base_model.model.q.lora_A.ab.weight",
                       "base_model.model.q.lora_A.lora_A.weight",
                       "base_model.model.lora_A.lora_A.a.weight",
                       "base_model.model.a.weight",
                       "base_model.model.q.base_layer.weight"};
  EXPECT_EQ(got(state, kLora, "a"),
            Names({"base_model.model.lora_A.lora_A.weight", "base_model.model.q.lora_A.weight"}));
  EXPECT_EQ(got(state, kLora, "ab"), Names({"base_model.model.q.lora_A.weight"}));
  EXPECT_EQ(got(state, kLora, "lora_A"), Names({"base_model.model.q.lora_A.weight"}));
}

TEST(GetAdapter, SaysWhichAdaptersThereAre) {
  EXPECT_ERROR(got({"base_model.model.q.lora_A.style.weight"}, kLora), Errc::not_found,
               "no tensors of an adapter \"default\"");
  EXPECT_HINT(got({"base_model.model.q.lora_A.style.weight"}, kLora), "it has \"style\"");
  EXPECT_HINT(got({"q.weight"}, kLora), "a base without an adapter");
}

TEST(GetAdapter, AddsThePrefixAndRemovesTheWrappersOfTraining) {
  EXPECT_EQ(got({"_orig_mod.q._fsdp_wrapped_module.lora_A.default.weight"}, kLora),
            Names({"base_model.model.q.lora_A.weight"}));
}

TEST(GetAdapter, HasBiasesAsTheModeSays) {
  const Names state = {"base_model.model.q.lora_A.default.weight",
                       "base_model.model.q.base_layer.bias",
                       "base_model.model.k.bias",
                       "base_model.model.q.lora_B.other.bias",
                       "base_model.model.c.original_module.bias",
                       "base_model.model.c.modules_to_save.other.bias"};
  const std::string a = "base_model.model.q.lora_A.weight", q = "base_model.model.q.base_layer.bias";
  EXPECT_EQ(got(state, R"({"peft_type": "LORA", "bias": "none"})"), Names({a}));
  EXPECT_EQ(got(state, R"({"peft_type": "LORA", "bias": "lora_only"})"), Names({q, a}));
  EXPECT_EQ(got(state, R"({"peft_type": "LORA", "bias": "all"})"), Names({"base_model.model.k.bias", q, a}));
  EXPECT_ERROR(got(state, R"({"peft_type": "LORA", "bias": "some"})"), Errc::malformed, "\"bias\" is \"some\"");
}

TEST(GetAdapter, KnowsTheBiasOfReleasesThatDidNotWrapModules) {
  EXPECT_EQ(got({"base_model.model.q.lora_A.default.weight", "base_model.model.q.bias", "base_model.model.q.weight"},
                R"({"peft_type": "LORA", "bias": "lora_only"})"),
            Names({"base_model.model.q.bias", "base_model.model.q.lora_A.weight"}));
}

TEST(GetAdapter, SavesEmbeddingsIfAsked) {
  const Names state = {"base_model.model.q.lora_A.default.weight", "base_model.model.embed_tokens.weight",
                       "base_model.model.lm_head.weight"};
  const Names all = {"base_model.model.embed_tokens.weight", "base_model.model.lm_head.weight",
                     "base_model.model.q.lora_A.weight"};
  EXPECT_EQ(got(state, kLora).size(), 1u);
  EXPECT_EQ(got(state, kLora, "default", {SaveEmbeddings::always}), all);
  EXPECT_EQ(got(state, kLora, "default", {SaveEmbeddings::automatic, 2}).size(), 1u);
  EXPECT_EQ(got(state, kLora, "default", {SaveEmbeddings::automatic, 3}), all);
}

TEST(GetAdapter, SavesTheEmbeddingsThatAreNotAdaptedBesideThoseThatAre) {
  const std::string words = "base_model.model.embed_tokens", head = "base_model.model.lm_head";
  for (const auto& [adapted, other] : {std::pair{head, words}, std::pair{words, head}}) {
    const Names state = {adapted + ".lora_A.default.weight", adapted + ".base_layer.weight", other + ".weight"};
    Names only_adapted = {adapted + ".base_layer.weight", adapted + ".lora_A.weight"};
    Names all = {adapted + ".base_layer.weight", adapted + ".lora_A.weight", other + ".weight"};
    std::ranges::sort(all);
    EXPECT_EQ(got(state, kLora), only_adapted);
    EXPECT_EQ(got(state, kLora, "default", {SaveEmbeddings::automatic, 2}), only_adapted) << "nothing was resized";
    EXPECT_EQ(got(state, kLora, "default", {SaveEmbeddings::automatic, 3}), all) << "both were resized";
    EXPECT_EQ(got(state, kLora, "default", {SaveEmbeddings::always}), all);
  }
}

// The names of embeddings and heads in each architecture; a head has the shape of the embeddings.
TEST(GetAdapter, FindsTheEmbeddingsOfEveryArchitecture) {
  const std::pair<const char*, const char*> table[] = {
      {"transformer.wte", "lm_head"},
      {"embeddings.word_embeddings", "cls.predictions.decoder"},
      {"gpt_neox.embed_in", "embed_out"},
      {"model.tok_embeddings", "output"},
      {"transformer.word_embeddings", "transformer.output_layer"},
      {"backbone.embeddings", "head"},
      {"model.shared", "lm_head"},
  };
  for (const auto& [words, head] : table) {
    const auto at = [](const std::string& module) { return "base_model.model." + module + ".weight"; };
    const StateDict state = state_of({{"base_model.model.q.lora_A.default.weight", {2, 3}},
                                      {at(words), {9, 3}},
                                      {at(head), {9, 3}},
                                      {at("layer.0.output"), {3, 3}},
                                      {at("wpe"), {5, 3}}});
    Names expected = {"base_model.model.q.lora_A.weight", at(words), at(head)};
    std::ranges::sort(expected);
    const auto found = [&](const GetAdapterOptions& options) {
      return sorted_names(get_adapter_state_dict(state, config_of(kLora), "default", options));
    };
    EXPECT_EQ(found({SaveEmbeddings::always}), expected);
    EXPECT_EQ(found({SaveEmbeddings::automatic, 8}), expected) << "one was added";
    EXPECT_EQ(found({SaveEmbeddings::automatic, 9}).size(), 1u);
    EXPECT_EQ(found({SaveEmbeddings::never, 8}).size(), 1u);
  }
}

TEST(GetAdapter, SavesEmbeddingsBesideAPromptIfAsked) {
  const StateDict state = state_of({{"base_model.transformer.wte.weight", {9, 3}},
                                    {"prompt_encoder.default.embedding.weight", {2, 3}},
                                    {"word_embeddings.weight", {9, 3}}});
  const AdapterConfig config = config_of(R"({"peft_type": "PROMPT_TUNING"})");
  const StateDict file = get_adapter_state_dict(state, config, "default", {SaveEmbeddings::always});
  EXPECT_EQ(sorted_names(file), Names({"base_model.transformer.wte.weight", "prompt_embeddings"}));
  EXPECT_TRUE(set_adapter_state_dict(state_of({{"transformer.wte.weight", {9, 3}}}), file, config).unexpected.empty());
}

TEST(GetAdapter, SaysThatItFoundNoEmbeddings) {
  const Names state = {"base_model.model.q.lora_A.default.weight", "base_model.model.q.base_layer.weight"};
  for (const GetAdapterOptions& options :
       {GetAdapterOptions{SaveEmbeddings::always}, GetAdapterOptions{SaveEmbeddings::automatic, 7}})
    EXPECT_ERROR(got(state, kLora, "default", options), Errc::not_found, "called like embeddings");
  EXPECT_EQ(got(state, kLora).size(), 1u);
  EXPECT_ERROR(got({"base_model.model.q.lora_A.emb.weight"}, kLora, "emb", {SaveEmbeddings::always}), Errc::not_found,
               "called like embeddings")
      << "an adapter may be called so";
}

TEST(GetAdapter, SavesOnlyOneCopyOfEmbeddingsThatAreSavedWhole) {
  const Names state = {"base_model.model.q.lora_A.default.weight", "base_model.model.wte.original_module.weight",
                       "base_model.model.wte.modules_to_save.default.weight"};
  EXPECT_EQ(got(state, R"({"peft_type": "LORA", "modules_to_save": ["wte"]})", "default", {SaveEmbeddings::always}),
            Names({"base_model.model.q.lora_A.weight", "base_model.model.wte.weight"}));
}

TEST(GetAdapter, LeavesOutAHeadThatIsTiedToTheTokens) {
  const Names state = {"base_model.model.q.lora_A.default.weight",
                       "base_model.model.embed_tokens.token_adapter.trainable_tokens_delta.default",
                       "base_model.model.lm_head.token_adapter.trainable_tokens_delta.default"};
  for (const char* indices : {R"([1, 2])", R"({"embed_tokens": [1, 2]})"})
    EXPECT_EQ(got(state, R"({"peft_type": "LORA", "trainable_token_indices": )" + std::string(indices) + "}"),
              Names({"base_model.model.embed_tokens.token_adapter.trainable_tokens_delta",
                     "base_model.model.q.lora_A.weight"}));
}

// A name in a state dict, with the adapter "default", and in a file; empty if the tensor is not saved.
struct Row {
  const char *config, *state, *file;
};
TEST(GetAdapter, NamesTheParametersOfEveryKind) {
  const Row rows[] = {
      {R"("FROD", "save_projection": true)", "base_model.frod_V.q_proj.default", "base_model.frod_V.q_proj"},
      {R"("FROD")", "base_model.frod_V.q_proj.default", ""},
      {R"("FROD")", "base_model.model.q.frod_lambda_l.default", "base_model.model.q.frod_lambda_l"},
      {R"("PEANUT")", "base_model.model.q.peanut_encoders.default.0.weight",
       "base_model.model.q.peanut_encoders.0.weight"},
      {R"("TINYLORA")", "base_model.tinylora_v.default.0", "base_model.tinylora_v.0"},
      {R"("TINYLORA")", "base_model.model.q.tinylora_v.default.0", ""},
      {R"("TINYLORA")", "base_model.model.q.tinylora_P.default", ""},
      {R"("UNILORA", "save_indices": true)", "base_model.model.q.unilora_indices_A.default",
       "base_model.model.q.unilora_indices_A"},
      {R"("VERA")", "base_model.vera_A.default", ""},
      {R"("ADAMSS")", "base_model.model.q.adamss_A.default.0", "base_model.model.q.adamss_A.0"},
      {R"("OSF")", "base_model.model.q._osf_U_high.default", "base_model.model.q._osf_U_high"},
      {R"("LORA")", "base_model.model.q.lora_magnitude_vector.default.weight",
       "base_model.model.q.lora_magnitude_vector"},
      {R"("LORA")", "base_model.model.q.lora_magnitude_vector.default", "base_model.model.q.lora_magnitude_vector"},
      {R"("LORA")", "base_model.model.q.lora_embedding_A.default", "base_model.model.q.lora_embedding_A"},
      {R"("ADALORA")", "base_model.model.q.ranknum.default", ""},
  };
  for (const Row& row : rows) {
    const std::string config = R"({"peft_type": )" + std::string(row.config) + "}";
    if (*row.file == 0) {
      EXPECT_ERROR(got({row.state}, config), Errc::not_found, "no tensors") << row.state;
    } else {
      EXPECT_EQ(got({row.state}, config), Names({row.file}));
    }
  }
}

TEST(GetAdapter, RefusesAMaskThatNobodyCanDrawAgain) {
  EXPECT_ERROR(got({"base_model.model.q.shira_weight.default"}, R"({"peft_type": "SHIRA", "mask_type": "mine"})"),
               Errc::unsupported, "does not say where the weights");
}

// Saves P-tuning with an LSTM whose directions have this many rows of weights.
Names got_lstm(std::uint64_t forwards, std::uint64_t backwards) {
  const std::string at = "prompt_encoder.default.";
  std::vector<std::pair<std::string, Shape>> tensors = {{at + "embedding.weight", {3, 2}}};
  for (const auto& [ending, rows] : {std::pair("_l0", forwards), std::pair("_l0_reverse", backwards)}) {
    tensors.emplace_back(at + "lstm_head.weight_ih" + ending, Shape{rows, 2});
    tensors.emplace_back(at + "lstm_head.weight_hh" + ending, Shape{rows, rows / 4});
    tensors.emplace_back(at + "lstm_head.bias_ih" + ending, Shape{rows});
    tensors.emplace_back(at + "lstm_head.bias_hh" + ending, Shape{rows});
  }
  return sorted_names(get_adapter_state_dict(state_of(tensors), config_of(R"({"peft_type": "P_TUNING"})")));
}

TEST(GetAdapter, RefusesAnLstmWhoseDirectionsDoNotLieSideBySide) {
  EXPECT_EQ(got_lstm(8, 8), Names({"prompt_embeddings"}));
  EXPECT_ERROR(got_lstm(8, 800), Errc::mismatch, "has the shape [800, 2] instead of [8, 2]");
  EXPECT_ERROR(got_lstm(8, 4), Errc::mismatch, "has the shape [4, 2] instead of [8, 2]");
  EXPECT_ERROR(got_lstm(7, 7), Errc::mismatch, "7 rows of weights, which are not 4 gates");
}

TEST(GetAdapter, RefusesToChooseRanksAmongPackedElements) {
  const std::string at = "base_model.model.q.lora_";
  StateDict state;
  const std::vector<std::byte> bytes(8);
  for (const char* part : {"A", "B", "E"})
    state.insert(at + part + ".default", Tensor::from_bytes(DType::f4, {4, 4}, bytes));
  const AdapterConfig config =
      config_of(R"({"peft_type": "ADALORA", "rank_pattern": {"q.lora_E": [true, false, true, false]}})");
  EXPECT_ERROR(get_adapter_state_dict(state, config), Errc::unsupported, "has dtype F4, of which no ranks");
}

TEST(ExtractAdapter, IsTheAdapterOfACheckpointAndRefusesADangerousOne) {
  Checkpoint model;
  model.target = "model.pt";
  model.tensors = state_of({{"base_model.model.q.lora_A.style.weight", {2, 3}}});
  const Adapter adapter = extract_adapter(model, config_of(kLora), "style");
  EXPECT_EQ(sorted_names(adapter.tensors), Names({"base_model.model.q.lora_A.weight"}));
  EXPECT_EQ(adapter.source, "model.pt");
  EXPECT_ERROR(extract_adapter(model, config_of(kLora)), Errc::not_found, "no tensors of an adapter \"default\"");
  model.dangerous.push_back({"os", "system", 3, "", Verdict::dangerous, "runs shell commands"});
  EXPECT_ERROR(extract_adapter(model, config_of(kLora), "style"), Errc::unsafe, "os.system");
  EXPECT_NO_THROW(extract_adapter(model, config_of(kLora), "style", {.allow_dangerous = true}));
}

TEST(GetAdapter, RefusesATypeThatNobodyKnows) {
  EXPECT_ERROR(got({"x"}, R"({"peft_type": "LORAX"})"), Errc::unsupported, "\"LORAX\" are not known");
  EXPECT_HINT(got({"x"}, R"({"peft_type": "LORAX"})"), "did you mean LORA?");
  EXPECT_HINT(got({"x"}, R"({"peft_type": "BONE"})"), "MISS");
}

}  // namespace
}  // namespace ballast
