#include "llamacpp/config/model_config.hpp"

#include <gtest/gtest.h>
#include <ballast/error.hpp>

#include <string>
#include <string_view>
#include <vector>

#include "llamacpp/model_folder_files.hpp"
#include "support/expect_error.hpp"

namespace ballast::llamacpp {
namespace {

using test::ModelFiles;

ModelConfig config_of(std::string_view json, std::string_view folder_name = "Model") {
  return read_model_config(ModelFiles(json, folder_name).folder());
}

std::string value(const ModelConfig& config, std::string_view key) {
  const Json* found = config.find(key);
  return found == nullptr ? "missing" : to_string(*found);
}

TEST(ModelClasses, KnowWhatLlamaCppCallsThem) {
  EXPECT_EQ(architecture_of("LlamaForCausalLM"), "llama");
  EXPECT_EQ(architecture_of("MixtralForCausalLM"), "llama");
  EXPECT_EQ(architecture_of("XLMRobertaModel"), "bert");
  EXPECT_EQ(architecture_of("Qwen3_5MoeForConditionalGeneration"), "qwen35moe");
  EXPECT_EQ(architecture_of("Xverse"), "");
  EXPECT_EQ(architecture_of(""), "");
}

TEST(ModelConfig, HasTheDefaultsOfItsClass) {
  const ModelConfig config = config_of(
      R"({"architectures":["LlamaForCausalLM"],"model_type":"llama","hidden_size":64,"num_attention_heads":4})");
  EXPECT_EQ(config.class_name, "LlamaForCausalLM");
  EXPECT_EQ(config.architecture, "llama");
  EXPECT_TRUE(config.has_defaults);
  EXPECT_EQ(value(config, "head_dim"), "16");
  EXPECT_EQ(value(config, "num_key_value_heads"), "4");
  EXPECT_EQ(value(config, "rms_norm_eps"), "1e-06");
  EXPECT_EQ(config.raw.find("rms_norm_eps"), nullptr);
}

TEST(ModelConfig, IsTakenAsItIsWithoutAClass) {
  const ModelConfig config = config_of(R"({"architectures":["InternLM2ForCausalLM"],"model_type":"internlm2","a":1})");
  EXPECT_FALSE(config.has_defaults);
  EXPECT_EQ(value(config, "rms_norm_eps"), "missing");
  EXPECT_EQ(value(config, "a"), "1");
}

// transformers' class would stop there, and the converter goes on with the file alone.
TEST(ModelConfig, IsTakenAsItIsIfTheClassWouldRefuseIt) {
  for (const std::string_view odd :
       {R"("rope_scaling":{"type":"linear"})", R"("rope_scaling":{"rope_type":"llama3","factor":8.0})",
        R"("rope_scaling":{})", R"("rope_scaling":"x")", R"("torch_dtype":"auto")", R"("problem_type":"x")",
        R"("num_attention_heads":0)", R"("hidden_size":"x")", R"("id2label":{"x":"y"})", R"("auto_map":null)"}) {
    const std::string json = R"({"architectures":["LlamaForCausalLM"],"model_type":"llama",)" + std::string(odd) + "}";
    EXPECT_FALSE(config_of(json).has_defaults) << odd;
  }
}

TEST(ModelConfig, KnowsOtherNamesOfTheSameValue) {
  const ModelConfig gpt2 = config_of(R"({"architectures":["GPT2LMHeadModel"],"model_type":"gpt2","hidden_size":64})");
  EXPECT_EQ(value(gpt2, "n_embd"), "64");
  EXPECT_EQ(value(gpt2, "hidden_size"), "missing");
  const ModelConfig falcon = config_of(R"({"architectures":["FalconForCausalLM"],"model_type":"falcon","n_embed":96})");
  EXPECT_EQ(value(falcon, "hidden_size"), "96");
}

TEST(ModelConfig, MergesTheLanguageModelsPartIntoTheRoot) {
  const ModelConfig gemma =
      config_of(R"({"architectures":["Gemma3ForConditionalGeneration"],"model_type":"gemma3","hidden_size":1,)"
                R"("text_config":{"hidden_size":64,"sliding_window":1024}})");
  EXPECT_EQ(value(gemma, "hidden_size"), "64");
  EXPECT_EQ(value(gemma, "sliding_window"), "1024");
  EXPECT_EQ(value(gemma, "rope_local_base_freq"), "10000.0");

  const ModelConfig internvl = config_of(
      R"({"architectures":["InternVLChatModel"],"llm_config":{"architectures":["Qwen2ForCausalLM"],"n_layers":2}})");
  EXPECT_EQ(internvl.class_name, "Qwen2ForCausalLM");
  EXPECT_EQ(internvl.architecture, "qwen2");
  EXPECT_EQ(internvl.count("n_layers num_layers"), 2u);

  const ModelConfig flat =
      config_of(R"({"architectures":["Qwen2VLForConditionalGeneration"],"model_type":"qwen2_vl","hidden_size":64})");
  EXPECT_EQ(value(flat, "hidden_size"), "64");
  EXPECT_EQ(value(flat, "num_hidden_layers"), "80");
}

TEST(ModelConfig, TellsArchitecturesOfOneClassApart) {
  EXPECT_EQ(config_of(R"({"architectures":["NomicBertModel"]})").architecture, "nomic-bert");
  EXPECT_EQ(config_of(R"({"architectures":["NomicBertModel"],"moe_every_n_layers":2})").architecture, "nomic-bert-moe");
  EXPECT_EQ(config_of(R"({"architectures":["XLMRobertaModel"],"lora_adaptations":["a"]})").architecture,
            "jina-bert-v3");
  EXPECT_EQ(
      config_of(R"({"architectures":["LlamaForCausalLM"],"num_hidden_layers":1,"draft_vocab_size":9})").architecture,
      "eagle3");
  EXPECT_EQ(config_of(R"({"ssm_cfg":{},"d_model":64})").architecture, "mamba");
  EXPECT_EQ(config_of(R"({"architectures":["SomethingNew"]})").architecture, "");
}

TEST(ModelConfig, FindsTheTypeInTheFoldersNameIfTheFileHasNone) {
  const std::string_view json = R"({"architectures":["BertModel"]})";
  EXPECT_EQ(value(config_of(json, "bert-base"), "layer_norm_eps"), "1e-12");
  EXPECT_EQ(value(config_of(json, "Model"), "layer_norm_eps"), "missing");
}

TEST(ModelConfig, CountsTheBlocksThatGuessAhead) {
  ModelConfig config;
  const std::vector<std::string_view> names = {"mtp.layers.1.x.weight", "model.mtp.layers.0.x", "mtp.norm.weight",
                                               "mtp.layers.x.y", "mtp.layers.7"};
  count_guessing_blocks(config, names);
  EXPECT_EQ(config.guessing_blocks, 2u);
}

TEST(ModelConfig, CollectsTheParametersOfRotaryPositions) {
  const ModelConfig config =
      config_of(R"({"architectures":["X"],"rope_theta":5.0,"rope_local_base_freq":7,"partial_rotary_factor":0.5,)"
                R"("rope_scaling":{"type":"linear","factor":2}})");
  EXPECT_EQ(to_string(rope_parameters(config)),
            R"({"type":"linear","factor":2,"sliding_attention":{"rope_theta":7},"rope_theta":5.0,)"
            R"("rope_type":"linear","partial_rotary_factor":0.5})");
  EXPECT_EQ(
      to_string(rope_parameters(config_of(R"({"architectures":["X"],"rope_parameters":null,"rope_scaling":{}})"))),
      "{}");
}

TEST(ModelConfig, RefusesWhatIsNoConfiguration) {
  EXPECT_ERROR(read_model_config(ModelFiles().folder()), Errc::not_found, "the model has no config.json");
  struct Case {
    std::string_view json;
    Errc code;
    std::string_view message;
  };
  constexpr Case kCases[] = {
      {"[]", Errc::malformed, "it is not a JSON object"},
      {"{", Errc::malformed, "config.json"},
      {"{}", Errc::malformed, "architectures"},
      {R"({"architectures":[]})", Errc::malformed, "architectures"},
      {R"({"architectures":[1]})", Errc::malformed, ""},
      {R"({"architectures":["X"],"text_config":3})", Errc::malformed, ""},
      {R"({"architectures":["X"],"thinker_config":{}})", Errc::malformed, "text_config"},
      {R"({"ssm_cfg":{"layer":7}})", Errc::malformed, ""},
  };
  for (const auto& [json, code, message] : kCases) EXPECT_ERROR(config_of(json), code, message);

  std::string many = R"({"architectures":["X"])";
  for (int i = 0; i < 5000; ++i) many += ",\"k" + std::to_string(i) + "\":0";
  EXPECT_ERROR(config_of(many + "}"), Errc::limit, "more than 4096 keys");
  const ModelConfig odd = config_of(R"({"architectures":["X"],"rope_scaling":[1]})");
  EXPECT_ERROR(rope_parameters(odd), Errc::malformed, "rope_scaling");
}

}  // namespace
}  // namespace ballast::llamacpp
