// The way back: the config.json that a GGUF's metadata and tensors determine.
#include <gtest/gtest.h>

#include <ballast/error.hpp>
#include <ballast/gguf_model.hpp>
#include <ballast/save.hpp>

#include <cmath>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "llamacpp/back/llama3_factors.hpp"
#include "llamacpp/keys/key_rows.hpp"
#include "llamacpp/rope_tensors.hpp"

namespace ballast {
namespace {

using llamacpp::back::llama3_scaling;

Tensor zeros(const Shape& shape, DType dtype = DType::f32) {
  const std::vector<float> values(*shape.numel());
  return Tensor::from_values<float>(DType::f32, shape, values).to(dtype);
}

// A small llama, as the converter writes it.
Checkpoint small_llama() {
  Checkpoint gguf;
  gguf.format = Format::gguf;
  TypedMetadata& keys = gguf.typed_metadata;
  keys.set(MetadataEntry::of("general.architecture", "llama"));
  keys.set(MetadataEntry::of("llama.block_count", 1u));
  keys.set(MetadataEntry::of("llama.context_length", 128u));
  keys.set(MetadataEntry::of("llama.embedding_length", 16u));
  keys.set(MetadataEntry::of("llama.feed_forward_length", 32u));
  keys.set(MetadataEntry::of("llama.attention.head_count", 4u));
  keys.set(MetadataEntry::of("llama.attention.head_count_kv", 2u));
  keys.set(MetadataEntry::of("llama.attention.key_length", 4u));
  keys.set(MetadataEntry::of("llama.attention.value_length", 4u));
  keys.set(MetadataEntry::of("llama.attention.layer_norm_rms_epsilon", 1e-5F));
  keys.set(MetadataEntry::of("llama.rope.freq_base", 10000.F));
  keys.set(MetadataEntry::of("llama.rope.dimension_count", 4u));
  keys.set(MetadataEntry::of("llama.vocab_size", 8u));
  keys.set(MetadataEntry::of("tokenizer.ggml.bos_token_id", 1u));
  gguf.tensors.insert("token_embd.weight", zeros({8, 16}));
  gguf.tensors.insert("blk.0.attn_q.weight", zeros({16, 16}));
  return gguf;
}

std::string notes_of(const Checkpoint& checkpoint) {
  std::string all;
  for (const Note& note : checkpoint.notes) all += note.text + "\n";
  return all;
}

TEST(ModelConfigOf, SaysSizesAsPeopleWriteThem) {
  const Json config = model_config_of(small_llama());
  EXPECT_EQ(config.at("architectures"), Json(Json::List{"LlamaForCausalLM"}));
  EXPECT_EQ(config.at("hidden_size"), Json(16));
  EXPECT_EQ(to_string(config.at("rms_norm_eps")), "1e-05");
  EXPECT_EQ(to_string(config.at("rope_theta")), "10000.0");
  EXPECT_EQ(config.at("bos_token_id"), Json(1));
  EXPECT_EQ(config.find("rope_scaling"), nullptr);
}

TEST(ModelConfigOf, LooksAtTensors) {
  Checkpoint gguf = small_llama();
  EXPECT_EQ(model_config_of(gguf).at("tie_word_embeddings"), Json(true));
  EXPECT_EQ(model_config_of(gguf).at("attention_bias"), Json(false));
  gguf.tensors.insert("output.weight", zeros({8, 16}));
  gguf.tensors.insert("blk.0.attn_q.bias", zeros({16}));
  EXPECT_EQ(model_config_of(gguf).at("tie_word_embeddings"), Json(false));
  EXPECT_EQ(model_config_of(gguf).at("attention_bias"), Json(true));
}

TEST(ModelConfigOf, IsAMistralIfThatGivesTheKeysAgain) {
  Checkpoint gguf = small_llama();
  gguf.typed_metadata.remove("llama.attention.key_length");
  gguf.typed_metadata.remove("llama.attention.value_length");
  EXPECT_EQ(model_config_of(gguf).at("model_type"), Json("mistral"));
  EXPECT_EQ(model_config_of(gguf).at("sliding_window"), Json());
  gguf.typed_metadata.set(MetadataEntry::of("general.name", "Tiny Llama"));
  EXPECT_EQ(model_config_of(gguf).at("model_type"), Json("llama"));
  gguf.typed_metadata.set(MetadataEntry::of("llama.expert_count", 4u));
  EXPECT_EQ(model_config_of(gguf).at("model_type"), Json("mixtral"));
}

TEST(ModelConfigOf, TakesLlamacppsDefaultsWhereAClassHasOthers) {
  Checkpoint gguf = small_llama();
  gguf.typed_metadata.set(MetadataEntry::of("llama.expert_count", 4u));
  gguf.typed_metadata.remove("llama.rope.freq_base");
  gguf.typed_metadata.remove("llama.attention.head_count_kv");
  EXPECT_EQ(model_config_of(gguf).at("rope_theta"), Json(10000.0));
  EXPECT_EQ(model_config_of(gguf).at("num_key_value_heads"), Json(4));
}

TEST(ModelConfigOf, DoesNotMakeUpSizes) {
  for (const char* key : {"block_count", "embedding_length", "feed_forward_length", "attention.head_count"}) {
    Checkpoint gguf = small_llama();
    gguf.typed_metadata.remove("llama." + std::string(key));
    EXPECT_TRUE(model_config_of(gguf).is_null()) << key;
  }
}

TEST(ModelConfigOf, IsNullForWhatIsNotAModelThatIsKnown) {
  Checkpoint gguf = small_llama();
  gguf.typed_metadata.set(MetadataEntry::of("general.type", "adapter"));
  EXPECT_TRUE(model_config_of(gguf).is_null());
  gguf = small_llama();
  gguf.typed_metadata.set(MetadataEntry::of("general.architecture", "grok"));
  EXPECT_TRUE(model_config_of(gguf).is_null());
  EXPECT_TRUE(model_config_of(Checkpoint()).is_null());
}

TEST(ToHuggingFaceModel, LeavesOutFactorsThatTheConfigurationSays) {
  Checkpoint gguf = small_llama();
  const std::vector<float> factors = {1, 8};
  gguf.tensors.insert("rope_freqs.weight", Tensor::from_values<float>(DType::f32, {2}, factors));
  const auto [model, config] = to_huggingface_model(gguf);
  EXPECT_EQ(config.at("rope_scaling").at("factor"), Json(8.0));
  EXPECT_FALSE(model.contains("rope_freqs.weight"));
  EXPECT_TRUE(model.contains("model.embed_tokens.weight"));
}

TEST(ToHuggingFaceModel, KeepsFactorsThatNoParametersGive) {
  Checkpoint gguf = small_llama();
  const std::vector<float> factors = {8, 1};
  gguf.tensors.insert("rope_freqs.weight", Tensor::from_values<float>(DType::f32, {2}, factors));
  const auto [model, config] = to_huggingface_model(gguf);
  EXPECT_EQ(config.find("rope_scaling"), nullptr);
  EXPECT_TRUE(model.contains("rope_freqs.weight"));
  EXPECT_NE(notes_of(model).find("do not determine \"rope_scaling\""), std::string::npos);
}

TEST(ToHuggingFaceModel, GivesBackThePositionsThatRobertaDoesNotUse) {
  Checkpoint gguf;
  gguf.format = Format::gguf;
  TypedMetadata& keys = gguf.typed_metadata;
  keys.set(MetadataEntry::of("general.architecture", "bert"));
  for (const auto& [key, value] : std::vector<std::pair<std::string, std::uint32_t>>{{"block_count", 1},
                                                                                     {"context_length", 4},
                                                                                     {"embedding_length", 2},
                                                                                     {"feed_forward_length", 4},
                                                                                     {"attention.head_count", 1}})
    keys.set(MetadataEntry::of("bert." + key, value));
  keys.set(MetadataEntry::of("tokenizer.ggml.model", "gpt2"));
  keys.set(MetadataEntry::of("tokenizer.ggml.padding_token_id", 1u));
  const std::vector<float> positions = {1, 2, 3, 4, 5, 6, 7, 8};
  gguf.tensors.insert("position_embd.weight", Tensor::from_values<float>(DType::f32, {4, 2}, positions).to(DType::f16));

  const auto [model, config] = to_huggingface_model(gguf);
  EXPECT_EQ(config.at("max_position_embeddings"), Json(6));
  const Tensor& found = model.at("embeddings.position_embeddings.weight");
  EXPECT_EQ(found.dtype(), DType::f16);
  EXPECT_EQ(found.values<float>(), (std::vector<float>{0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8}));
}

TEST(AddModelConfig, NamesTheTypeOfMostBytes) {
  StateDict tensors;
  tensors.insert("norm", zeros({4}));
  tensors.insert("matrix", zeros({64, 4}, DType::bf16));
  SavePlan plan = plan_save(Checkpoint(std::move(tensors)), "somewhere/");
  add_model_config(plan, Json());
  ASSERT_EQ(plan.files.size(), 1u);
  add_model_config(plan, Json::Members{{"model_type", "llama"}});
  ASSERT_EQ(plan.files.size(), 2u);
  EXPECT_EQ(plan.files[1].path, "somewhere/config.json");
  const std::string text(reinterpret_cast<const char*>(plan.files[1].head.data()), plan.files[1].head.size());
  EXPECT_EQ(text, "{\n  \"model_type\": \"llama\",\n  \"torch_dtype\": \"bfloat16\"\n}\n");
}

TEST(Llama3Scaling, FindsTheParametersOfPublishedModels) {
  for (const double factor : {8.0, 32.0, 16.0}) {
    const Json scaling = Json::Members{{"factor", factor},
                                       {"low_freq_factor", 1.0},
                                       {"high_freq_factor", 4.0},
                                       {"original_max_position_embeddings", 8192},
                                       {"rope_type", "llama3"}};
    llamacpp::ModelConfig config;
    config.architecture = "llama";
    config.values = Json::Members{{"head_dim", 128}, {"rope_theta", 500000.0}, {"rope_scaling", scaling}};
    const Tensor factors = llamacpp::rope_tensors(config).at(0).second;
    EXPECT_EQ(llama3_scaling(factors.values<float>(), 500000.0), scaling);
  }
}

TEST(Llama3Scaling, IsNullForAnythingElse) {
  EXPECT_TRUE(llama3_scaling({}, 10000).is_null());
  EXPECT_TRUE(llama3_scaling({1, 1, 1}, 10000).is_null());
  EXPECT_TRUE(llama3_scaling({2, 1, 3}, 10000).is_null());
  EXPECT_TRUE(llama3_scaling({1, 2, 3, 4}, 0).is_null());
  EXPECT_NO_THROW(llama3_scaling({1, 1e38F}, 1e300));
  EXPECT_TRUE(llama3_scaling(std::vector<float>(4096, 1.5F), 2).is_null());
}

// Any value under any key.
MetadataEntry some_entry(const std::string& key, std::mt19937& random) {
  const auto pick = [&]<class T>(std::initializer_list<T> values) { return values.begin()[random() % values.size()]; };
  const std::vector<std::uint32_t> counts(random() % 4, pick({0u, 1u, 7u, ~0u}));
  const std::vector<std::string> texts(random() % 3, pick({std::string("a"), std::string("\xff"), std::string()}));
  switch (random() % 9) {
    case 0: return MetadataEntry::of(key, pick({0.F, 1.F, -1.F, 1e-45F, 3e38F, INFINITY, NAN}));
    case 1: return MetadataEntry::of(key, pick({0.0, 1e308, -1e-320}));
    case 2: return MetadataEntry::of(key, pick({std::int64_t{-1}, std::numeric_limits<std::int64_t>::min()}));
    case 3: return MetadataEntry::of(key, std::numeric_limits<std::uint64_t>::max() - random() % 2);
    case 4: return MetadataEntry::of(key, random() % 2 == 0);
    case 5: return MetadataEntry::of(key, pick({"yarn", "longrope", "\xff\xfe", "", "linear"}));
    case 6: return MetadataEntry::numbers<std::uint32_t>(key, counts);
    case 7: return MetadataEntry::strings(key, texts);
    default: return MetadataEntry::of(key, pick({0u, 1u, 2u, 3u, 64u, 4096u, ~0u}));
  }
}

TEST(ModelConfigOf, SurvivesEveryValueUnderEveryKey) {
  std::mt19937 random(7);
  for (const std::string_view architecture : architectures_with_names()) {
    const auto* keys = llamacpp::find_architecture_keys(architecture);
    for (int round = 0; keys != nullptr && round < 40; ++round) {
      Checkpoint gguf = small_llama();
      gguf.typed_metadata.set(MetadataEntry::of("general.architecture", architecture));
      std::vector<std::string> names = {"rope.scaling.type", "rope.scaling.factor", "nextn_predict_layers",
                                        "rope.scale_linear", "rope.scaling.original_context_length"};
      for (const auto& table : keys->tables) {
        for (const auto& row : table) names.emplace_back(row.key);
      }
      for (const std::string& name : names) {
        if (name.empty()) continue;
        const std::string key = std::string(architecture) + "." + name;
        const bool is_usual = random() % 3 != 0;
        gguf.typed_metadata.set(is_usual ? MetadataEntry::of(key, 1u + random() % 64) : some_entry(key, random));
      }
      gguf.typed_metadata.set(some_entry("tokenizer.ggml.padding_token_id", random));
      gguf.tensors.insert(round % 2 == 0 ? "rope_freqs.weight" : "rope_factors_long.weight", zeros({2}));
      const Json config = model_config_of(gguf);
      if (config.is_null()) continue;
      EXPECT_EQ(Json::parse(to_string(config)), config) << architecture;
    }
  }
}

}  // namespace
}  // namespace ballast
