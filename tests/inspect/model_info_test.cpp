#include <gtest/gtest.h>

#include <string>

#include <ballast/json.hpp>
#include <ballast/model_info.hpp>
#include <ballast/open.hpp>

#include "builders/safetensors_file.hpp"
#include "inspect/config_numbers.hpp"

namespace ballast::test {
namespace {

ModelInfo numbers_of(const std::string& config) {
  ModelInfo model;
  read_config_numbers(Json::parse(config), model);
  return model;
}

TEST(ConfigNumbers, AreFoundByEveryNameThatModelsHaveForThem) {
  const ModelInfo llama = numbers_of(R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama",
      "num_hidden_layers": 16, "hidden_size": 2048, "num_attention_heads": 32, "num_key_value_heads": 8,
      "vocab_size": 128256, "max_position_embeddings": 131072, "torch_dtype": "torch.bfloat16"})");
  EXPECT_EQ(llama.class_name, "LlamaForCausalLM");
  EXPECT_EQ(llama.dtype, "bfloat16");
  EXPECT_EQ(llama.head_size, 64u);
  EXPECT_EQ(kv_cache_bytes(llama, 8192), 8192u * 16 * 2 * 8 * 64 * 2);
  const ModelInfo gpt2 =
      numbers_of(R"({"model_type": "gpt2", "n_layer": 12, "n_embd": 768, "n_head": 12, "n_ctx": 1024})");
  EXPECT_EQ(gpt2.layers, 12u);
  EXPECT_EQ(gpt2.kv_heads, 12u);
  EXPECT_EQ(gpt2.context, 1024u);
  const ModelInfo falcon = numbers_of(R"({"n_layer": 2, "hidden_size": 64, "n_head": 8, "multi_query": true})");
  EXPECT_EQ(falcon.kv_heads, 1u);
  const ModelInfo gemma = numbers_of(R"({"architectures": ["Gemma3ForConditionalGeneration"],
      "text_config": {"num_hidden_layers": 34, "dtype": "float16"}})");
  EXPECT_EQ(gemma.layers, 34u);
  EXPECT_EQ(gemma.dtype, "float16");
}

TEST(KvCache, KeepsNoMoreTokensThanAWindowHas) {
  const ModelInfo model = numbers_of(R"({"num_hidden_layers": 3, "num_attention_heads": 2, "head_dim": 4,
      "sliding_window": 10, "layer_types": ["sliding_attention", "sliding_attention", "full_attention"]})");
  EXPECT_EQ(kv_cache_bytes(model, 100), (2u * 10 + 100) * 2 * 2 * 4 * 2);
  EXPECT_EQ(kv_cache_bytes(model, 5), 3u * 5 * 2 * 2 * 4 * 2);
}

TEST(KvCache, IsNothingThatAnEncoderHas) {
  for (const char* type : {"bert", "modernbert", "nomic_bert", "xlm-roberta"}) {
    const std::string config = R"("num_hidden_layers": 2, "num_attention_heads": 2, "head_dim": 4, "model_type": ")" +
                               std::string(type) + "\"";
    EXPECT_FALSE(kv_cache_bytes(numbers_of("{" + config + "}"), 100)) << type;
    EXPECT_TRUE(kv_cache_bytes(numbers_of("{" + config + R"(, "is_decoder": true})"), 100)) << type;
  }
}

TEST(KvCache, IsOneVectorForAllHeadsOfALatentAttention) {
  const ModelInfo model = numbers_of(R"({"num_hidden_layers": 61, "num_attention_heads": 128, "hidden_size": 7168,
      "kv_lora_rank": 512, "qk_rope_head_dim": 64})");
  EXPECT_EQ(kv_cache_bytes(model, 1000), 1000u * 61 * 576 * 2);
}

TEST(KvCache, IsNotGuessedWhereTheModelDoesNotSayEnough) {
  for (const char* config :
       {"{}", R"({"num_hidden_layers": 2})",
        R"({"num_hidden_layers": 2, "state_size": 16, "num_attention_heads": 2, "head_dim": 4})",
        R"({"num_hidden_layers": 2, "num_attention_heads": 2, "head_dim": 4, "layer_types": ["full_attention"]})",
        R"({"num_hidden_layers": 99999999, "num_attention_heads": 2, "head_dim": 4})",
        R"({"num_hidden_layers": "2", "num_attention_heads": -2, "head_dim": 1.5})",
        R"({"num_hidden_layers": 2, "num_attention_heads": 9223372036854775807, "head_dim": 9223372036854775807})",
        R"({"num_hidden_layers": 2, "num_attention_heads": 0, "hidden_size": 7})"}) {
    EXPECT_EQ(kv_cache_bytes(numbers_of(config), 1 << 20), std::nullopt) << config;
  }
  const ModelInfo large =
      numbers_of(R"({"num_hidden_layers": 60000, "num_attention_heads": 65536, "head_dim": 65536})");
  EXPECT_EQ(kv_cache_bytes(large, ~0ull), std::nullopt);
}

TEST(GgufNumbers, CountOnlyTheLayersThatAttend) {
  TypedMetadata metadata;
  metadata.set(MetadataEntry::of("general.architecture", "lfm2"));
  metadata.set(MetadataEntry::of("lfm2.block_count", std::uint32_t{3}));
  metadata.set(MetadataEntry::of("lfm2.embedding_length", std::uint32_t{64}));
  metadata.set(MetadataEntry::of("lfm2.attention.head_count", std::uint32_t{8}));
  const std::vector<std::uint32_t> heads = {0, 2, 0};
  metadata.set(MetadataEntry::numbers<std::uint32_t>("lfm2.attention.head_count_kv", heads));
  ModelInfo model;
  read_gguf_numbers(metadata, model);
  EXPECT_EQ(model.kv_heads, 2u);
  EXPECT_EQ(kv_cache_bytes(model, 100), 100u * 2 * (8 + 8) * 2);
}

TEST(ModelInfo, NotesFilesThatCannotBeReadAndGoesOn) {
  const TempDir folder;
  SafetensorsFile().tensor("w", "U8", {2}).write(folder, "model.safetensors");
  folder.write("config.json", "{");
  folder.write("tokenizer.json", "{}");
  folder.write("tokenizer_config.json", "[]");
  folder.write("generation_config.json", R"({"temperature": 0.6, "eos_token_id": 2})");
  folder.write("adapter_config.json", R"({"peft_type": "LORA", "r": 8, "lora_alpha": 16.5})");
  const ModelInfo model = model_info(open(folder.path()));
  EXPECT_EQ(model.notes.size(), 2u);
  EXPECT_EQ(model.tokenizer, "tokenizer.json");
  ASSERT_EQ(model.generation.size(), 1u);
  EXPECT_EQ(model.generation[0].second, "0.6");
  ASSERT_TRUE(model.adapter);
  EXPECT_EQ(model.adapter->rank, 8u);
  EXPECT_EQ(model.adapter->alpha, 16.5);
}

}  // namespace
}  // namespace ballast::test
