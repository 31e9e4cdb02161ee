#include "llamacpp/keys/hyperparameters.hpp"

#include <fmt/format.h>
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

struct Written {
  TypedMetadata keys;
  std::vector<Note> notes;

  std::string at(std::string_view key) const {
    const MetadataEntry* entry = keys.find(key);
    if (entry == nullptr) return "missing";
    const MetadataType type = entry->is_array() ? entry->element_type : entry->type;
    return fmt::format("{}{} {}", entry->is_array() ? "list of " : "", name(type), text(*entry));
  }
};

Written write(const ModelFiles& files, std::uint32_t file_type = 0) {
  Written written;
  const ModelFolder folder = files.folder();
  const ModelConfig config = read_model_config(folder);
  add_early_keys(config, written.keys);
  add_hyperparameters(folder, config, file_type, written.keys, written.notes);
  return written;
}

Written write(std::string_view config, std::uint32_t file_type = 0) { return write(ModelFiles(config), file_type); }

// A config.json of a class, with what else it says.
std::string config(std::string_view class_name, std::string_view type, std::string_view more) {
  return fmt::format(R"({{"architectures":["{}"],"model_type":"{}",{}}})", class_name, type, more);
}

constexpr std::string_view kSizes =
    R"("hidden_size":64,"num_hidden_layers":2,"num_attention_heads":4,"intermediate_size":96)";

std::string llama(std::string_view more) {
  return config("LlamaForCausalLM", "llama", std::string(kSizes) + std::string(more));
}

TEST(Hyperparameters, AreInTheOrderOfTheConverter) {
  std::vector<std::string> keys;
  for (const MetadataEntry& entry : write(llama(""), 7).keys) keys.emplace_back(entry.key);
  const std::vector<std::string> expected = {"llama.block_count",          "llama.context_length",
                                             "llama.embedding_length",     "llama.feed_forward_length",
                                             "llama.attention.head_count", "llama.attention.head_count_kv",
                                             "llama.rope.freq_base",       "llama.attention.layer_norm_rms_epsilon",
                                             "llama.attention.key_length", "llama.attention.value_length",
                                             "general.file_type",          "llama.vocab_size",
                                             "llama.rope.dimension_count", "general.quantization_version"};
  EXPECT_EQ(keys, expected);
}

TEST(Hyperparameters, HaveTheTypesOfTheConverter) {
  const Written written = write(llama(R"(,"rope_theta":10000)"), 7);
  EXPECT_EQ(written.at("llama.block_count"), "u32 2");
  EXPECT_EQ(written.at("llama.rope.freq_base"), "f32 10000");
  EXPECT_EQ(written.at("general.file_type"), "u32 7");
  EXPECT_EQ(written.at("general.quantization_version"), "u32 2");
}

TEST(Hyperparameters, TellHowRotaryPositionsAreScaled) {
  const Written linear = write(llama(R"(,"rope_scaling":{"type":"linear","factor":2.0})"));
  EXPECT_EQ(linear.at("llama.rope.scaling.type"), "string linear");
  EXPECT_EQ(linear.at("llama.rope.scaling.factor"), "f32 2");

  const Written yarn = write(llama(
      R"(,"rope_scaling":{"rope_type":"yarn","factor":4,"original_max_position_embeddings":8192,"beta_fast":32})"));
  EXPECT_EQ(yarn.at("llama.rope.scaling.type"), "string yarn");
  EXPECT_EQ(yarn.at("llama.rope.scaling.original_context_length"), "u32 8192");
  EXPECT_EQ(yarn.at("llama.rope.scaling.yarn_beta_fast"), "f32 32");
  EXPECT_EQ(yarn.at("llama.rope.scaling.yarn_beta_slow"), "missing");

  EXPECT_EQ(write(llama(R"(,"rope_scaling":{"type":"dynamic","factor":2.0})")).at("llama.rope.scaling.type"),
            "missing");
  const Written odd = write(llama(R"(,"rope_scaling":{"type":"odd"})"));
  ASSERT_EQ(odd.notes.size(), 1u);
  EXPECT_NE(odd.notes[0].text.find("\"odd\""), std::string::npos);
  EXPECT_ERROR(write(llama(R"(,"rope_scaling":{"rope_type":"yarn","factor":4.0})")), Errc::malformed,
               "original_max_position_embeddings");
}

TEST(Hyperparameters, ScaleTheAttentionOfPhi3BeforeAllElse) {
  std::string factors = "1.0";
  for (int i = 1; i < 8; ++i) factors += ",1.0";
  const std::string long_phi3 =
      config("Phi3ForCausalLM", "phi3",
             fmt::format(R"({},"max_position_embeddings":131072,"original_max_position_embeddings":4096,)"
                         R"("rope_scaling":{{"type":"su","short_factor":[{}],"long_factor":[{}]}})",
                         kSizes, factors, factors));
  const Written written = write(long_phi3);
  EXPECT_EQ(written.keys[0].key, "phi3.rope.scaling.attn_factor");
  EXPECT_EQ(written.at("phi3.rope.scaling.attn_factor"), "f32 1.1902381");
  EXPECT_EQ(written.at("phi3.attention.sliding_window"), "u32 0");
  EXPECT_EQ(write(config("Phi3ForCausalLM", "phi3", kSizes)).at("phi3.rope.scaling.attn_factor"), "missing");
}

TEST(Hyperparameters, FollowTheirArchitecture) {
  struct Case {
    std::string config, key, value;
  };
  const std::string sizes(kSizes);
  const Case cases[] = {
      {config("GraniteForCausalLM", "granite", sizes + R"(,"head_dim":8,"attention_multiplier":0.5)"),
       "granite.attention.key_length", "missing"},
      {config("GraniteForCausalLM", "granite", sizes + R"(,"attention_multiplier":0.5)"), "granite.attention.scale",
       "f32 0.5"},
      {config("GPT2LMHeadModel", "gpt2", R"("n_embd":64,"n_ctx":512)"), "gpt2.feed_forward_length", "u32 256"},
      {config("GPTNeoXForCausalLM", "gpt_neox", sizes), "general.file_type", "missing"},
      {config("FalconForCausalLM", "falcon", R"("num_kv_heads":8)"), "falcon.attention.head_count_kv", "u32 8"},
      {config("RWForCausalLM", "RefinedWeb", R"("hidden_size":64,"n_layer":2,"n_head":8,"layer_norm_epsilon":1e-5)"),
       "falcon.attention.head_count_kv", "u32 1"},
      {config("RobertaModel", "roberta", R"("max_position_embeddings":514)"), "bert.context_length", "u32 512"},
      {config("BertForSequenceClassification", "bert", R"("id2label":{"10":"c","9":"b","0":"a"})"),
       "bert.classifier.output_labels", "list of string [\"a\", \"b\", \"c\"]"},
      {config("BertModel", "bert", R"("x":1)"), "bert.classifier.output_labels", "missing"},
      {config("DistilBertModel", "distilbert", R"("x":1)"), "bert.attention.layer_norm_epsilon", "f32 1e-12"},
      {config("T5EncoderModel", "t5", R"("d_model":64)"), "t5encoder.decoder_block_count", "missing"},
      {config("T5ForConditionalGeneration", "t5", R"("num_layers":3,"decoder_start_token_id":0)"),
       "t5.decoder_block_count", "u32 3"},
      {config("Olmo3ForCausalLM", "olmo3", R"("num_hidden_layers":4)"), "olmo2.attention.sliding_window_pattern",
       "list of bool [true, true, true, false]"},
      {config("Lfm2ForCausalLM", "lfm2", R"("num_hidden_layers":2,"full_attn_idxs":[1])"),
       "lfm2.attention.head_count_kv", "list of i32 [0, 8]"},
      {config("Gemma3ForCausalLM", "gemma3_text", R"("sliding_window_pattern":1)"), "gemma3.attention.sliding_window",
       "missing"},
      {config("Gemma3TextModel", "gemma3_text", R"("use_bidirectional_attention":true,"sliding_window":512)"),
       "gemma-embedding.attention.sliding_window", "u32 512"},
      {config("DeepseekV3ForCausalLM", "deepseek_v3",
              R"("rope_scaling":{"type":"yarn","factor":40,)"
              R"("original_max_position_embeddings":4096,"mscale_all_dim":1.0})"),
       "deepseek2.rope.scaling.yarn_log_multiplier", "f32 0.1"},
      {config("Glm4MoeForCausalLM", "glm4_moe", R"("num_hidden_layers":2,"num_nextn_predict_layers":1)"),
       "glm4moe.block_count", "u32 3"},
      {config("CohereForCausalLM", "cohere", R"("model_max_length":131072)"), "command-r.context_length", "u32 131072"},
      {config("FalconMambaForCausalLM", "falcon_mamba", R"("hidden_size":64,"num_hidden_layers":2)"),
       "mamba.ssm.dt_b_c_rms", "bool true"},
      {config("MambaForCausalLM", "mamba", R"("hidden_size":64,"num_hidden_layers":2,"time_step_rank":"auto")"),
       "mamba.ssm.time_step_rank", "u32 4"},
      {config("Qwen3VLForConditionalGeneration", "qwen3_vl", R"("text_config":{})"), "qwen3vl.n_deepstack_layers",
       "u32 3"},
  };
  for (const auto& [json, key, value] : cases) EXPECT_EQ(write(json).at(key), value) << json;
}

TEST(Hyperparameters, CallAModelInMxfp4ByItsType) {
  const std::string gpt_oss =
      config("GptOssForCausalLM", "gpt_oss", R"("quantization_config":{"quant_method":"mxfp4"})");
  EXPECT_EQ(write(gpt_oss, 1).at("general.file_type"), "u32 38");
  EXPECT_EQ(write(gpt_oss, 7).at("general.file_type"), "u32 7");
}

TEST(Hyperparameters, CountBlocksThatOnlyTheTensorsTellOf) {
  const ModelFiles files(config("Qwen3NextForCausalLM", "qwen3_next", R"("num_hidden_layers":4)"));
  const ModelFolder folder = files.folder();
  ModelConfig model = read_model_config(folder);
  const std::vector<std::string_view> names = {"mtp.layers.0.input_layernorm.weight"};
  count_guessing_blocks(model, names);
  Written written;
  add_hyperparameters(folder, model, 0, written.keys, written.notes);
  EXPECT_EQ(written.at("qwen3next.block_count"), "u32 5");
  EXPECT_EQ(written.at("qwen3next.nextn_predict_layers"), "u32 1");
}

TEST(Hyperparameters, TellHowAnEmbeddingIsPooled) {
  ModelFiles files(config("Qwen2Model", "qwen2", kSizes));
  files.write("modules.json", R"([{"type":"x.Transformer","path":""},{"type":"x.Pooling","path":"1_Pooling"}])");
  EXPECT_ERROR(write(files), Errc::not_found, "modules.json names it");
  files.write("1_Pooling/config.json", R"({"pooling_mode_cls_token":false,"pooling_mode_lasttoken":true})");
  EXPECT_EQ(write(files).at("qwen2.pooling_type"), "u32 3");
  files.write("1_Pooling/config.json", R"({"pooling_mode":"mean"})");
  EXPECT_EQ(write(files).at("qwen2.pooling_type"), "u32 1");
  files.write("1_Pooling/config.json", R"({"pooling_mode_max_tokens":true})");
  EXPECT_ERROR(write(files), Errc::unsupported, "it pools neither");
  files.write("modules.json", R"([{"type":"x.Pooling","path":"../../x"}])");
  EXPECT_ERROR(write(files), Errc::unsafe, "is not in the model's");
}

TEST(Hyperparameters, KnowARerankerByItsName) {
  const Written written = write(ModelFiles(config("Qwen3ForCausalLM", "qwen3", kSizes), "Qwen3-Reranker-0.6B"));
  EXPECT_EQ(written.at("qwen3.pooling_type"), "u32 4");
  EXPECT_EQ(written.at("qwen3.classifier.output_labels"), "list of string [\"yes\", \"no\"]");
  EXPECT_TRUE(written.keys.contains("tokenizer.chat_template.rerank"));
  EXPECT_FALSE(write(config("Qwen3ForCausalLM", "qwen3", kSizes)).keys.contains("qwen3.pooling_type"));
}

TEST(Hyperparameters, RefuseAModelThatLlamaCppCouldNotRun) {
  struct Case {
    std::string config;
    Errc code;
    std::string_view message;
  };
  const Case cases[] = {
      {config("SomethingNew", "new", kSizes), Errc::unsupported, "\"SomethingNew\""},
      {config("DbrxForCausalLM", "dbrx", kSizes), Errc::unsupported, "\"DbrxForCausalLM\""},
      {config("NomicBertModel", "nomic_bert", R"("n_layer":2,"n_positions":4096)"), Errc::unsupported, "n_positions"},
      {config("NomicBertModel", "nomic_bert", R"("n_layer":2,"n_positions":8192,"causal":true)"), Errc::unsupported,
       "\"causal\""},
      {config("MambaForCausalLM", "mamba", R"("hidden_size":64,"num_hidden_layers":2,"intermediate_size":64)"),
       Errc::unsupported, "twice its hidden size"},
      {config("Gemma3ForCausalLM", "gemma3_text", R"("attn_logit_softcapping":50.0)"), Errc::unsupported,
       "attn_logit_softcapping"},
      {llama(R"(,"scoring_func":"other")"), Errc::unsupported, "scoring_func"},
  };
  for (const auto& [json, code, message] : cases) EXPECT_ERROR(write(json), code, message);
}

TEST(Hyperparameters, NameTheKeyWhoseValueIsWrong) {
  struct Case {
    std::string_view more, message;
  };
  constexpr Case kCases[] = {
      {R"(,"max_position_embeddings":2048.0)", "\"llama.context_length\" would be 2048.0"},
      {R"(,"max_position_embeddings":4294967296)", "a whole number below 2^32"},
      {R"(,"max_position_embeddings":-1)", "a whole number below 2^32"},
      {R"(,"vocab_size":"many")", "\"llama.vocab_size\""},
      {R"(,"vocab_size":null)", "\"vocab_size\""},
      {R"(,"rms_norm_eps":"small")", "\"llama.attention.layer_norm_rms_epsilon\""},
      {R"(,"rms_norm_eps":1e300)", "a number that fits 32 bits"},
      {R"(,"rope_theta":[1])", "\"llama.rope.freq_base\""},
      {R"(,"num_key_value_heads":[1,2.5])", "a list of values of one kind"},
      {R"(,"num_key_value_heads":{"a":1})", "\"llama.attention.head_count_kv\""},
      {R"(,"rope_scaling":{"rope_type":7})", "rope_type"},
  };
  for (const auto& [more, message] : kCases) EXPECT_ERROR(write(llama(more)), Errc::malformed, message);
  EXPECT_ERROR(write(config("InternLM2ForCausalLM", "internlm2", R"("hidden_size":64)")), Errc::malformed, "n_layers");
}

// Every key of every kind of model, set to what no model has.
TEST(Hyperparameters, SurviveAnyValue) {
  constexpr std::string_view kModels[][2] = {
      {"LlamaForCausalLM", "llama"},
      {"Phi3ForCausalLM", "phi3"},
      {"PhiForCausalLM", "phi"},
      {"BertModel", "bert"},
      {"RobertaModel", "roberta"},
      {"Lfm2ForCausalLM", "lfm2"},
      {"DeepseekV3ForCausalLM", "deepseek_v3"},
      {"Qwen3NextForCausalLM", "qwen3_next"},
      {"Olmo3ForCausalLM", "olmo3"},
      {"MambaForCausalLM", "mamba"},
      {"MiniCPMForCausalLM", "minicpm"},
      {"FalconForCausalLM", "falcon"},
      {"GPTNeoXForCausalLM", "gpt_neox"},
      {"T5ForConditionalGeneration", "t5"},
      {"Gemma3ForCausalLM", "gemma3_text"},
      {"PhiMoEForCausalLM", "phimoe"},
      {"NomicBertModel", "nomic_bert"},
      {"GPTBigCodeForCausalLM", "gpt_bigcode"},
  };
  constexpr std::string_view kOdd[] = {"null",  "-1", "0",  "1.5",  "1e308", "18446744073709551615",
                                       "\"x\"", "[]", "{}", "true", "[[1]]", R"({"rope_type":[]})"};
  constexpr std::string_view kKeys[] = {
      "num_hidden_layers", "num_attention_heads", "num_key_value_heads",     "hidden_size",
      "head_dim",          "rope_scaling",        "rope_parameters",         "layer_types",
      "id2label",          "num_labels",          "sliding_window",          "partial_rotary_factor",
      "full_attn_idxs",    "pad_token_id",        "max_position_embeddings", "n_positions",
      "block_multiple_of", "rotary_pct",          "dim_model_base",          "kv_lora_rank",
      "qk_rope_head_dim",  "vision_config",       "quantization_config",     "use_bidirectional_attention"};
  int written = 0;
  const ModelFolder nothing = ModelFiles().folder();
  for (const auto& [class_name, type] : kModels) {
    for (const std::string_view key : kKeys) {
      for (const std::string_view odd : kOdd) {
        const Json json = Json::parse(config(class_name, type, fmt::format(R"("{}":{})", key, odd)));
        try {
          Written into;
          const ModelConfig model = make_model_config(json, "Model");
          add_early_keys(model, into.keys);
          add_hyperparameters(nothing, model, 0, into.keys, into.notes);
          ++written;
        } catch (const Error& error) {
          EXPECT_FALSE(error.message().empty());
        }
      }
    }
  }
  EXPECT_GT(written, 0);
}

}  // namespace
}  // namespace ballast::llamacpp
