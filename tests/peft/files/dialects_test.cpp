// LoRAs as programs other than PEFT save them. A LoRA is, at each module, scaling·B·A: that product must survive every
// conversion.
#include <gtest/gtest.h>

#include <map>

#include <ballast/open.hpp>

#include "builders/safetensors_file.hpp"
#include "support/adapter_parts.hpp"
#include "support/expect_error.hpp"
#include "support/tensor_values.hpp"

namespace ballast {
namespace {

using test::config_of;
using test::counting;
using test::SafetensorsFile;
using test::small_lora;
using test::sorted_names;
using test::state_of;
using test::TempDir;
using test::values_of;
using Names = std::vector<std::string>;

// Returns scaling·B·A of each module, by its name.
std::map<std::string, std::vector<double>> deltas(const Adapter& adapter) {
  const std::string prefix = "base_model.model.", ending = ".lora_A.weight";
  std::map<std::string, std::vector<double>> all;
  for (const auto& [name, a] : adapter.tensors) {
    if (!name.ends_with(ending)) continue;
    const std::string module(name.substr(prefix.size(), name.size() - prefix.size() - ending.size()));
    const Tensor& b = adapter.tensors.at(prefix + module + ".lora_B.weight");
    const auto x = values_of(a), y = values_of(b);
    const std::size_t ranks = a.shape()[0], columns = x.size() / ranks, rows = b.shape()[0];
    std::vector<double>& delta = all[module];
    for (std::size_t i = 0; i < rows; ++i) {
      for (std::size_t j = 0; j < columns; ++j) {
        double sum = 0;
        for (std::size_t k = 0; k < ranks; ++k)
          sum += static_cast<double>(y[i * ranks + k]) * static_cast<double>(x[k * columns + j]);
        delta.push_back(sum * lora_scaling(adapter.config, module));
      }
    }
  }
  return all;
}

void expect_same(const Adapter& a, const Adapter& b) {
  const auto x = deltas(a), y = deltas(b);
  ASSERT_EQ(x.size(), y.size());
  for (const auto& [module, values] : x) {
    ASSERT_TRUE(y.contains(module)) << module;
    ASSERT_EQ(values.size(), y.at(module).size());
    for (std::size_t i = 0; i < values.size(); ++i)
      EXPECT_NEAR(values[i], y.at(module)[i], 1e-6 * std::abs(values[i])) << module;
  }
}

// Two modules of a language model, whose scalings differ and are not powers of two.
Adapter llama_lora() {
  Adapter adapter = small_lora(R"({"peft_type": "LORA", "r": 2, "lora_alpha": 3, "use_rslora": true,
                                   "rank_pattern": {"v_proj": 3}, "alpha_pattern": {"v_proj": 5}})");
  const std::string at = "base_model.model.model.layers.0.self_attn.";
  adapter.tensors = state_of({{at + "q_proj.lora_A.weight", {2, 6}},
                              {at + "q_proj.lora_B.weight", {8, 2}},
                              {at + "v_proj.lora_A.weight", {3, 6}},
                              {at + "v_proj.lora_B.weight", {4, 3}}});
  return adapter;
}

TEST(Dialects, KeepTheScalingThereAndBack) {
  const Adapter adapter = llama_lora();
  const NameOptions names{.architecture = "llama", .head_count = 2, .head_count_kv = 1};
  for (const auto& [dialect, file] :
       {std::pair(AdapterDialect::kohya, "a.safetensors"), std::pair(AdapterDialect::diffusers, "b.safetensors"),
        std::pair(AdapterDialect::gguf, "c.gguf")}) {
    TempDir dir;
    save_adapter(adapter, dir / file, {.dialect = dialect, .names = names});
    const Adapter back = load_adapter(dir / file);
    // diffusers without a pipeline has the names of PEFT.
    EXPECT_EQ(back.dialect, dialect == AdapterDialect::diffusers ? AdapterDialect::peft : dialect);
    expect_same(adapter, back);
    check_adapter(back);
    save_adapter(back, dir / "peft");
    expect_same(adapter, load_adapter(dir / "peft"));
  }
}

TEST(Dialects, RefuseSettingsThatTheyCannotExpress) {
  TempDir dir;
  for (const auto& [field, text] :
       {std::pair(R"("fan_in_fan_out": true)", "[in, out], which "),
        std::pair(R"("target_parameters": ["experts.w"])", "not weights of modules, which ")}) {
    const Adapter adapter = small_lora(R"({"peft_type": "LORA", "r": 2, "lora_alpha": 4, )" + std::string(field) + "}");
    for (const AdapterDialect dialect : {AdapterDialect::kohya, AdapterDialect::diffusers, AdapterDialect::gguf}) {
      EXPECT_ERROR(save_adapter(adapter, dir / (dialect == AdapterDialect::gguf ? "x.gguf" : "x.safetensors"),
                                {.dialect = dialect}),
                   Errc::unsupported, text + std::string(name(dialect)) + " has no place for");
    }
    save_adapter(adapter, dir / "peft", {.save = {.overwrite = true}});
  }
  const Adapter none = small_lora(R"({"peft_type": "LORA", "r": 2, "lora_alpha": 4, "fan_in_fan_out": false,
                                      "target_parameters": []})");
  save_adapter(none, dir / "x.safetensors", {.dialect = AdapterDialect::kohya});
}

TEST(Kohya, SaysAnAlphaForEachModule) {
  TempDir dir;
  save_adapter(llama_lora(), dir / "a.safetensors", {.dialect = AdapterDialect::kohya});
  const Checkpoint file = open(dir / "a.safetensors");
  EXPECT_EQ(file.size(), 6u);
  EXPECT_EQ(file.at("lora_model_layers_0_self_attn_q_proj.lora_down.weight").shape(), Shape({2, 6}));
  EXPECT_FLOAT_EQ(values_of(file.at("lora_model_layers_0_self_attn_v_proj.alpha"))[0], 5 * std::sqrt(3.0f));
}

struct KohyaName {
  const char *flat, *module;
};
TEST(Kohya, HasFlatNamesWhoseWordsAreKnown) {
  const KohyaName table[] = {
      {"lora_unet_down_blocks_0_attentions_1_transformer_blocks_0_attn1_to_out_0",
       "unet.down_blocks.0.attentions.1.transformer_blocks.0.attn1.to_out.0"},
      {"lora_unet_mid_block_resnets_0_time_emb_proj", "unet.mid_block.resnets.0.time_emb_proj"},
      {"lora_te_text_model_encoder_layers_3_self_attn_out_proj",
       "text_encoder.text_model.encoder.layers.3.self_attn.out_proj"},
      {"lora_unet_input_blocks_4_1_transformer_blocks_0_ff_net_0_proj",
       "unet.input_blocks.4.1.transformer_blocks.0.ff.net.0.proj"},
      {"lora_unet_double_blocks_12_img_attn_qkv", "unet.double_blocks.12.img_attn.qkv"},
      {"lora_unet_some_thing_9_new", "unet.some_thing_9_new"},
      {"lora_model_layers_0_self_attn_q_proj", "model.layers.0.self_attn.q_proj"},
  };
  for (const KohyaName& row : table) {
    TempDir dir;
    const std::string flat = row.flat;
    dir.write("in.safetensors", SafetensorsFile()
                                    .tensor(flat + ".lora_down.weight", "F32", {2, 3})
                                    .tensor(flat + ".lora_up.weight", "F32", {4, 2})
                                    .text());
    const Adapter adapter = load_adapter(dir / "in.safetensors");
    EXPECT_EQ(sorted_names(adapter.tensors)[0], "base_model.model." + std::string(row.module) + ".lora_A.weight");
    save_adapter(adapter, dir / "out.safetensors", {.dialect = AdapterDialect::kohya});
    EXPECT_TRUE(open(dir / "out.safetensors").contains(flat + ".lora_up.weight")) << flat;
  }
}

TEST(Kohya, HasTheNamesOfTheBaseIfTheBaseIsKnown) {
  TempDir dir;
  dir.write("x.safetensors", SafetensorsFile()
                                 .tensor("lora_unet_some_thing_9_new.lora_down.weight", "F32", {2, 3})
                                 .tensor("lora_unet_some_thing_9_new.lora_up.weight", "F32", {4, 2})
                                 .text());
  const Adapter adapter =
      load_adapter(dir / "x.safetensors", {.base_names = {"some.thing_9.new.weight", "other.weight"}});
  EXPECT_EQ(sorted_names(adapter.tensors)[0], "base_model.model.some.thing_9.new.lora_A.weight");
}

TEST(Kohya, NumbersTextEncodersIfThereAreTwo) {
  TempDir dir;
  SafetensorsFile file;
  for (const char* at :
       {"lora_te1_text_model_encoder_layers_0_mlp_fc1", "lora_te2_text_model_encoder_layers_0_mlp_fc1"})
    file.tensor(std::string(at) + ".lora_down.weight", "F16", {2, 3})
        .tensor(std::string(at) + ".lora_up.weight", "F16", {4, 2});
  dir.write("in.safetensors", file.text());
  save_adapter(load_adapter(dir / "in.safetensors"), dir / "out.safetensors", {.dialect = AdapterDialect::kohya});
  EXPECT_TRUE(open(dir / "out.safetensors").contains("lora_te1_text_model_encoder_layers_0_mlp_fc1.alpha"));
  EXPECT_TRUE(open(dir / "out.safetensors").contains("lora_te2_text_model_encoder_layers_0_mlp_fc1.alpha"));
}

TEST(Kohya, HasMagnitudesInColumns) {
  TempDir dir;
  Adapter adapter = small_lora(R"({"peft_type": "LORA", "r": 2, "use_dora": true})");
  adapter.tensors.insert("base_model.model.q.lora_magnitude_vector", counting({4}));
  save_adapter(adapter, dir / "a.safetensors", {.dialect = AdapterDialect::kohya});
  EXPECT_EQ(open(dir / "a.safetensors").at("lora_q.dora_scale").shape(), Shape({4, 1}));
  const Adapter back = load_adapter(dir / "a.safetensors");
  EXPECT_TRUE(back.config.is_set("use_dora"));
  EXPECT_EQ(back.tensors.at("base_model.model.q.lora_magnitude_vector").shape(), Shape({4}));
}

TEST(Diffusers, IsReadInAllItsSpellings) {
  for (const auto& [a, b] :
       {std::pair(".lora_A.weight", ".lora_B.weight"), std::pair(".lora.down.weight", ".lora.up.weight"),
        std::pair(".lora_linear_layer.down.weight", ".lora_linear_layer.up.weight"),
        std::pair("_lora.down.weight", "_lora.up.weight"), std::pair(".lora_down.weight", ".lora_up.weight")}) {
    TempDir dir;
    dir.write("x.safetensors", SafetensorsFile()
                                   .tensor("unet.to_q" + std::string(a), "F32", {2, 3})
                                   .tensor("unet.to_q" + std::string(b), "F32", {4, 2})
                                   .text());
    const Adapter adapter = load_adapter(dir / "x.safetensors");
    EXPECT_EQ(adapter.dialect, AdapterDialect::diffusers) << a;
    EXPECT_EQ(sorted_names(adapter.tensors),
              Names({"base_model.model.unet.to_q.lora_A.weight", "base_model.model.unet.to_q.lora_B.weight"}));
  }
}

TEST(Diffusers, IsScaledByItsMetadata) {
  TempDir dir;
  dir.write("x.safetensors", SafetensorsFile()
                                 .metadata({{"lora_adapter_metadata", R"({\"unet.r\": 2, \"unet.lora_alpha\": 6})"}})
                                 .tensor("unet.to_q.lora_A.weight", "F32", {2, 3})
                                 .tensor("unet.to_q.lora_B.weight", "F32", {4, 2})
                                 .text());
  EXPECT_EQ(lora_scaling(load_adapter(dir / "x.safetensors").config, "unet.to_q"), 3);
}

TEST(Gguf, HasTheMetadataAndTheOrderOfRowsOfLlamaCpp) {
  TempDir dir;
  save_adapter(
      llama_lora(), dir / "a.gguf",
      {.dialect = AdapterDialect::gguf, .names = {.architecture = "llama", .head_count = 2, .head_count_kv = 1}});
  const Checkpoint file = open(dir / "a.gguf");
  EXPECT_EQ(file.typed_metadata.find_string("general.type"), "adapter");
  EXPECT_EQ(file.typed_metadata.find_string("adapter.type"), "lora");
  EXPECT_NE(file.typed_metadata.find("adapter.lora.alpha"), nullptr);
  // There are two heads of four rows, whose halves are interleaved: 0, 2, 1, 3, 4, 6, 5, 7.
  const auto rows = values_of(file.at("blk.0.attn_q.weight.lora_b"));
  EXPECT_LT(rows[0], rows[4]);
  EXPECT_LT(rows[4], rows[2]);
}

// Makes an adapter as llama.cpp writes it: with general.architecture, and nothing about heads.
Checkpoint lora_of_llama_cpp(const std::string& architecture, const std::vector<std::string>& weights) {
  Checkpoint file;
  file.typed_metadata.set(MetadataEntry::of("general.architecture", architecture));
  file.typed_metadata.set(MetadataEntry::of("general.type", "adapter"));
  file.typed_metadata.set(MetadataEntry::of("adapter.type", "lora"));
  file.typed_metadata.set(MetadataEntry::of("adapter.lora.alpha", 4.0f));
  for (const std::string& weight : weights) {
    file.tensors.insert(weight + ".lora_a", counting({2, 3}));
    file.tensors.insert(weight + ".lora_b", counting({8, 2}));
  }
  return file;
}

TEST(Gguf, CanBeLookedAtWithoutTheHeadsOfItsBase) {
  TempDir dir;
  save(lora_of_llama_cpp("llama", {"blk.0.attn_q.weight", "blk.0.attn_k.weight", "blk.0.ffn_up.weight"}),
       dir / "a.gguf");
  const Adapter adapter = load_adapter(dir / "a.gguf");
  const AdapterSummary summary = summarize(adapter);
  EXPECT_EQ(summary.tensors, 6u);
  EXPECT_EQ(summary.scales.at(0).scaling, 2);
  EXPECT_EQ(summary.modules.size(), 3u);
  EXPECT_NE(adapter.tensors.find("base_model.model.model.layers.0.self_attn.k_proj.lora_B.weight"), nullptr);

  ASSERT_EQ(find_problems(adapter).size(), 1u);
  EXPECT_NE(find_problems(adapter)[0].hint.text().find("NameOptions::head_count"), std::string::npos);
  EXPECT_ERROR(check_adapter(adapter), Errc::invalid_argument, "nothing says llama.attention.head_count");
  EXPECT_ERROR(save_adapter(adapter, dir / "peft"), Errc::invalid_argument, "nothing says llama.attention.head_count");
  EXPECT_FALSE(std::filesystem::exists(dir / "peft/adapter_model.safetensors"));
  const Adapter whole = load_adapter(dir / "a.gguf", {.names = {.head_count = 2, .head_count_kv = 2}});
  EXPECT_TRUE(find_problems(whole).empty());
}

TEST(Gguf, CanBeLookedAtWhateverItsArchitecture) {
  TempDir dir;
  save(lora_of_llama_cpp("mystery", {"blk.0.attn_q.weight"}), dir / "a.gguf");
  save(lora_of_llama_cpp("qwen2", {"blk.0.attn_q.weight", "blk.0.of_nobody.weight"}), dir / "b.gguf");
  for (const char* file : {"a.gguf", "b.gguf"}) {
    const Adapter adapter = load_adapter(dir / file);
    EXPECT_EQ(summarize(adapter).type, "LORA");
    EXPECT_ERROR(check_adapter(adapter), Errc::unsupported, "has no name in PEFT for the architecture") << file;
  }
  EXPECT_EQ(summarize(load_adapter(dir / "a.gguf")).modules.at(0).name, "attn_q");
}

TEST(Gguf, KeepsEmbeddings) {
  TempDir dir;
  Adapter adapter = small_lora();
  adapter.tensors = state_of({{"base_model.model.model.embed_tokens.lora_embedding_A", {2, 10}},
                              {"base_model.model.model.embed_tokens.lora_embedding_B", {4, 2}}});
  save_adapter(adapter, dir / "a.gguf", {.dialect = AdapterDialect::gguf, .names = {.architecture = "qwen2"}});
  EXPECT_EQ(open(dir / "a.gguf").at("token_embd.weight.lora_a").shape(), Shape({10, 2}));
  const Adapter back = load_adapter(dir / "a.gguf");
  EXPECT_EQ(sorted_names(back.tensors), sorted_names(adapter.tensors));
  const std::string a = "base_model.model.model.embed_tokens.lora_embedding_A";
  EXPECT_EQ(values_of(back.tensors.at(a)), values_of(adapter.tensors.at(a)));
}

TEST(Mlx, IsTransposedAndScaledByItsConfiguration) {
  TempDir dir;
  dir.write("adapter_config.json", R"({"fine_tune_type": "lora", "lora_parameters": {"rank": 2, "scale": 20.0}})");
  dir.write("adapters.safetensors",
            SafetensorsFile().tensor("model.q.lora_a", "F32", {3, 2}).tensor("model.q.lora_b", "F32", {2, 4}).text());
  const Adapter adapter = load_adapter(dir.path());
  EXPECT_EQ(adapter.dialect, AdapterDialect::mlx);
  EXPECT_EQ(adapter.tensors.at("base_model.model.model.q.lora_A.weight").shape(), Shape({2, 3}));
  EXPECT_EQ(adapter.tensors.at("base_model.model.model.q.lora_B.weight").shape(), Shape({4, 2}));
  EXPECT_EQ(lora_scaling(adapter.config, "model.q"), 20);
}

struct Refusal {
  AdapterDialect dialect;
  const char* config;
  std::vector<std::pair<std::string, Shape>> more;
  const char* text;
};
TEST(Dialects, RefuseAdaptersThatTheyCannotExpress) {
  const Refusal table[] = {
      {AdapterDialect::kohya,
       R"({"peft_type": "IA3"})",
       {},
       "this is an adapter of the type IA3, which kohya has no place for"},
      {AdapterDialect::kohya,
       R"({"peft_type": "LORA", "r": 2})",
       {{"base_model.model.head.weight", {2}}},
       "\"base_model.model.head.weight\" is not a LoRA"},
      {AdapterDialect::kohya,
       R"({"peft_type": "LORA", "r": 2})",
       {{"base_model.model.e.lora_embedding_A", {2, 2}}},
       "is not one of a pair of matrices"},
      {AdapterDialect::kohya,
       R"({"peft_type": "LORA", "r": 2, "alora_invocation_tokens": [7]})",
       {},
       "this LoRA is of the variant aLoRA, which kohya has no place for"},
      {AdapterDialect::kohya,
       R"({"peft_type": "LORA", "r": 2})",
       {{"base_model.model.q.lora_B.bias", {4}}},
       "has a bias"},
      {AdapterDialect::gguf,
       R"({"peft_type": "LORA", "r": 2})",
       {{"base_model.model.q.lora_magnitude_vector", {4}}},
       "more than two matrices"},
      {AdapterDialect::gguf,
       R"({"peft_type": "LORA", "r": 2})",
       {},
       "module \"q\" has no name in GGUF for the architecture qwen2"},
      {AdapterDialect::mlx, R"({"peft_type": "LORA", "r": 2})", {}, "are read, and not written"},
  };
  for (const Refusal& row : table) {
    Adapter adapter = small_lora(row.config);
    for (const auto& [name, shape] : row.more) adapter.tensors.insert(name, counting(shape));
    const std::string path = row.dialect == AdapterDialect::gguf ? "x.gguf" : "x.safetensors";
    EXPECT_ERROR(plan_save(adapter, path, {.dialect = row.dialect, .names = {.architecture = "qwen2"}}),
                 Errc::unsupported, row.text);
  }
  EXPECT_ERROR(plan_save(small_lora(), "x.pt", {.dialect = AdapterDialect::kohya}), Errc::invalid_argument,
               ".safetensors file");
}

struct BadFile {
  SafetensorsFile file;
  Errc code;
  const char* text;
};
TEST(Dialects, SayWhatIsWrongWithAFile) {
  const std::string a = "lora_unet_x.lora_down.weight", b = "lora_unet_x.lora_up.weight";
  const BadFile table[] = {
      {SafetensorsFile().tensor(a, "F32", {2, 3}), Errc::mismatch, "only one half"},
      {SafetensorsFile().tensor(a, "F32", {2, 3}).tensor(b, "F32", {4, 3}), Errc::mismatch,
       "an A of rank 2 and a B of rank 3"},
      {SafetensorsFile().tensor(a, "F32", {0, 3}).tensor(b, "F32", {4, 0}), Errc::mismatch, "rank 0"},
      {SafetensorsFile().tensor(a, "F32", {2, 3}).tensor(b, "F32", {4, 2}).tensor("lora_unet_x.alpha", "F32", {2}),
       Errc::malformed, "instead of one number"},
      {SafetensorsFile()
           .tensor(a, "F32", {2, 3})
           .tensor(b, "F32", {4, 2})
           .values<float>("lora_unet_x.alpha", "F32", {}, {NAN}),
       Errc::malformed, "the alpha of module \"unet.x\" is NaN"},
      {SafetensorsFile().tensor(a, "F32", {2, 3}).tensor("lora_unet_x.hada_w1_a", "F32", {2}), Errc::unsupported,
       "not a part of a plain LoRA"},
  };
  for (const BadFile& bad : table) {
    TempDir dir;
    dir.write("x.safetensors", bad.file.text());
    EXPECT_ERROR(load_adapter(dir / "x.safetensors"), bad.code, bad.text);
  }
}

}  // namespace
}  // namespace ballast
