// The conversions that transformers makes when it loads a published checkpoint, and the way back.
#include <ballast/conversions.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include <ballast/ballast.hpp>

#include "builders/temp_dir.hpp"
#include "support/expect_error.hpp"
#include "support/tensor_values.hpp"

namespace ballast {
namespace {

using test::names_of;
using test::numbers;
using test::values_of;
using Names = std::vector<std::string>;

struct Named {
  std::string name;
  Shape shape;
};

// Tensors that differ from each other.
Checkpoint published(const std::vector<Named>& tensors) {
  Checkpoint checkpoint;
  float first = 0;
  for (const auto& [name, shape] : tensors) {
    checkpoint.tensors.insert(name, numbers(shape, first));
    first += 100;
  }
  return checkpoint;
}

std::vector<Named> shapes_of(const Checkpoint& checkpoint) {
  std::vector<Named> shapes;
  for (const auto& [name, tensor] : checkpoint) shapes.push_back({std::string(name), tensor.shape()});
  std::ranges::sort(shapes, {}, &Named::name);
  return shapes;
}

std::string text_of(const std::vector<Named>& shapes) {
  std::string text;
  for (const auto& [name, shape] : shapes) text += name + " " + to_string(shape) + "\n";
  return text;
}

// Expects the names and shapes that transformers has, and everything as it was after the way back.
Checkpoint expect_converted(const char* type, const Checkpoint& before, std::vector<Named> expected) {
  Checkpoint after = with_conversions(before, type);
  std::ranges::sort(expected, {}, &Named::name);
  EXPECT_EQ(text_of(shapes_of(after)), text_of(expected)) << type;
  const Checkpoint back = without_conversions(after, type);
  EXPECT_EQ(text_of(shapes_of(back)), text_of(shapes_of(before))) << type;
  EXPECT_TRUE(diff(before, back).equal()) << type;
  const Checkpoint again = with_conversions(after, type);
  EXPECT_TRUE(diff(after, again).equal()) << type << ": what is converted stays";
  return after;
}

std::vector<Named> experts(const std::string& layer, const Names& words, int count = 3) {
  std::vector<Named> tensors;
  for (int i = 0; i < count; ++i) {
    const std::string expert = layer + ".experts." + std::to_string(i) + ".";
    tensors.push_back({expert + words[0] + ".weight", {4, 2}});
    tensors.push_back({expert + words[1] + ".weight", {2, 4}});
    tensors.push_back({expert + words[2] + ".weight", {4, 2}});
  }
  return tensors;
}

std::vector<Named> operator+(std::vector<Named> a, const std::vector<Named>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

const Names kNumbered{"w1", "w2", "w3"}, kWords{"gate_proj", "down_proj", "up_proj"};

TEST(Conversions, StackTheExpertsOfMixtral) {
  const std::string block = "model.layers.0.block_sparse_moe";
  const Checkpoint before =
      published(experts(block, kNumbered) + std::vector<Named>{{block + ".gate.weight", {3, 2}},
                                                               {"model.layers.0.self_attn.q_proj.weight", {2, 2}}});
  const Checkpoint after = expect_converted("mixtral", before,
                                            {{"model.layers.0.mlp.experts.gate_up_proj", {3, 8, 2}},
                                             {"model.layers.0.mlp.experts.down_proj", {3, 2, 4}},
                                             {"model.layers.0.mlp.gate.weight", {3, 2}},
                                             {"model.layers.0.self_attn.q_proj.weight", {2, 2}}});
  const Tensor fused = after.at("model.layers.0.mlp.experts.gate_up_proj");
  EXPECT_EQ(values_of(fused.slice(parse_slice("1, 0:4"))), values_of(before.at(block + ".experts.1.w1.weight")));
  EXPECT_EQ(values_of(fused.slice(parse_slice("1, 4:8"))), values_of(before.at(block + ".experts.1.w3.weight")));
}

TEST(Conversions, StackExpertsThatHaveTheNamesOfADenseLayer) {
  for (const char* type : {"qwen2_moe", "qwen3_moe", "deepseek_v3", "olmoe"}) {
    const Checkpoint before = published(experts("model.layers.3.mlp", kWords) + experts("model.layers.12.mlp", kWords) +
                                        std::vector<Named>{{"model.layers.0.mlp.gate_proj.weight", {4, 2}},
                                                           {"model.layers.3.mlp.shared_experts.up_proj.weight", {4, 2}},
                                                           {"model.layers.3.mlp.gate.e_score_correction_bias", {3}}});
    const Checkpoint after = expect_converted(type, before,
                                              {{"model.layers.3.mlp.experts.gate_up_proj", {3, 8, 2}},
                                               {"model.layers.3.mlp.experts.down_proj", {3, 2, 4}},
                                               {"model.layers.12.mlp.experts.gate_up_proj", {3, 8, 2}},
                                               {"model.layers.12.mlp.experts.down_proj", {3, 2, 4}},
                                               {"model.layers.0.mlp.gate_proj.weight", {4, 2}},
                                               {"model.layers.3.mlp.shared_experts.up_proj.weight", {4, 2}},
                                               {"model.layers.3.mlp.gate.e_score_correction_bias", {3}}});
    EXPECT_EQ(values_of(after.at("model.layers.12.mlp.experts.down_proj").slice(parse_slice("2"))),
              values_of(before.at("model.layers.12.mlp.experts.2.down_proj.weight")));
  }
}

TEST(Conversions, KnowWhatOthersCallTheirExperts) {
  expect_converted("phimoe",
                   published(experts("l.0.block_sparse_moe", kNumbered) +
                             std::vector<Named>{{"l.0.block_sparse_moe.gate.weight", {3, 2}}}),
                   {{"l.0.mlp.experts.gate_up_proj", {3, 8, 2}},
                    {"l.0.mlp.experts.down_proj", {3, 2, 4}},
                    {"l.0.mlp.router.weight", {3, 2}}});
  expect_converted(
      "lfm2_moe", published(experts("l.0.feed_forward", kNumbered)),
      {{"l.0.feed_forward.experts.gate_up_proj", {3, 8, 2}}, {"l.0.feed_forward.experts.down_proj", {3, 2, 4}}});
  expect_converted(
      "jamba", published(experts("l.0.feed_forward", kWords)),
      {{"l.0.feed_forward.experts.gate_up_proj", {3, 8, 2}}, {"l.0.feed_forward.experts.down_proj", {3, 2, 4}}});
  expect_converted("exaone_moe",
                   published(experts("l.0.mlp", kWords) + std::vector<Named>{{"l.0.mlp.e_score_correction_bias", {3}}}),
                   {{"l.0.mlp.experts.gate_up_proj", {3, 8, 2}},
                    {"l.0.mlp.experts.down_proj", {3, 2, 4}},
                    {"l.0.mlp.gate.e_score_correction_bias", {3}}});
  expect_converted("ernie4_5_moe", published({{"l.0.mlp.moe_statics.e_score_correction_bias", {3}}}),
                   {{"l.0.mlp.gate.moe_statics.e_score_correction_bias", {3}}});
  expect_converted("mimo_v2_flash", published({{"l.0.self_attn.attention_sink_bias", {3}}}),
                   {{"l.0.self_attn.sinks", {3}}});
  expect_converted("nemotron_h",
                   published({{"backbone.embedding.weight", {2, 2}},
                              {"backbone.layers.1.mixer.experts.0.up_proj.weight", {4, 2}},
                              {"backbone.layers.1.mixer.experts.0.down_proj.weight", {2, 4}},
                              {"backbone.layers.1.mixer.experts.1.up_proj.weight", {4, 2}},
                              {"backbone.layers.1.mixer.experts.1.down_proj.weight", {2, 4}}}),
                   {{"model.embeddings.weight", {2, 2}},
                    {"model.layers.1.mixer.experts.up_proj", {2, 4, 2}},
                    {"model.layers.1.mixer.experts.down_proj", {2, 2, 4}}});
  expect_converted("granitemoe",
                   published({{"l.0.block_sparse_moe.input_linear.weight", {3, 8, 2}},
                              {"l.0.block_sparse_moe.output_linear.weight", {3, 2, 4}},
                              {"l.0.block_sparse_moe.router.layer.weight", {3, 2}}}),
                   {{"l.0.block_sparse_moe.experts.gate_up_proj", {3, 8, 2}},
                    {"l.0.block_sparse_moe.experts.down_proj", {3, 2, 4}},
                    {"l.0.block_sparse_moe.router.weight", {3, 2}}});
}

TEST(Conversions, TurnTheExpertsOfQwen3VisionIfTheyAreOfTheOlderLayout) {
  const std::string layer = "model.language_model.layers.0.";
  const Checkpoint before = published({{layer + "mlp.experts.gate_up_proj", {3, 2, 8}},
                                       {layer + "mlp.experts.down_proj", {3, 4, 2}},
                                       {layer + "input_layernorm.weight", {2}}});
  const Checkpoint after = expect_converted("qwen3_vl_moe", before,
                                            {{layer + "mlp.experts.gate_up_proj", {3, 8, 2}},
                                             {layer + "mlp.experts.down_proj", {3, 2, 4}},
                                             {layer + "input_layernorm.weight", {2}}});
  EXPECT_EQ(values_of(after.at(layer + "mlp.experts.gate_up_proj").slice(parse_slice("0, 1"))),
            (std::vector<float>{1, 9}));
}

TEST(Conversions, NameWhatOpenAiPublishesOfGptOss) {
  const std::string layer = "model.layers.0.";
  const Checkpoint before = published({{"embedding.weight", {5, 4}},
                                       {"block.0.attn.norm.scale", {4}},
                                       {"block.0.attn.qkv.weight", {20, 4}},
                                       {"block.0.attn.qkv.bias", {20}},
                                       {"block.0.attn.sinks", {8}},
                                       {"block.0.attn.out.weight", {4, 16}},
                                       {"block.0.mlp.norm.scale", {4}},
                                       {"block.0.mlp.gate.weight", {2, 4}},
                                       {"block.0.mlp.mlp1_weight.blocks", {2, 6, 1, 16}},
                                       {"block.0.mlp.mlp1_weight.scales", {2, 6, 1}},
                                       {"block.0.mlp.mlp1_bias", {2, 6}},
                                       {"block.0.mlp.mlp2_bias", {2, 4}},
                                       {"norm.scale", {4}},
                                       {"unembedding.weight", {5, 4}}});
  const Checkpoint after = expect_converted("gpt_oss", before,
                                            {{"model.embed_tokens.weight", {5, 4}},
                                             {layer + "input_layernorm.weight", {4}},
                                             {layer + "self_attn.q_proj.weight", {16, 4}},
                                             {layer + "self_attn.k_proj.weight", {2, 4}},
                                             {layer + "self_attn.v_proj.weight", {2, 4}},
                                             {layer + "self_attn.q_proj.bias", {16}},
                                             {layer + "self_attn.k_proj.bias", {2}},
                                             {layer + "self_attn.v_proj.bias", {2}},
                                             {layer + "self_attn.sinks", {8}},
                                             {layer + "self_attn.o_proj.weight", {4, 16}},
                                             {layer + "post_attention_layernorm.weight", {4}},
                                             {layer + "mlp.router.weight", {2, 4}},
                                             {layer + "mlp.experts.gate_up_proj_blocks", {2, 6, 1, 16}},
                                             {layer + "mlp.experts.gate_up_proj_scales", {2, 6, 1}},
                                             {layer + "mlp.experts.gate_up_proj_bias", {2, 6}},
                                             {layer + "mlp.experts.down_proj_bias", {2, 4}},
                                             {"model.norm.weight", {4}},
                                             {"lm_head.weight", {5, 4}}});
  EXPECT_EQ(values_of(after.at(layer + "self_attn.v_proj.bias")), (std::vector<float>{318, 319}));
}

TEST(Conversions, GiveOldNamesOfEncodersTheirNewNames) {
  expect_converted("bert",
                   published({{"bert.embeddings.LayerNorm.gamma", {2}},
                              {"bert.embeddings.LayerNorm.beta", {2}},
                              {"cls.predictions.transform.LayerNorm.gamma", {2}},
                              {"bert.encoder.layer.0.output.dense.bias", {2}}}),
                   {{"bert.embeddings.LayerNorm.weight", {2}},
                    {"bert.embeddings.LayerNorm.bias", {2}},
                    {"cls.predictions.transform.LayerNorm.weight", {2}},
                    {"bert.encoder.layer.0.output.dense.bias", {2}}});
  expect_converted("distilbert", published({{"LayerNorm.gamma", {2}}, {"LayerNorm.beta", {2}}}),
                   {{"LayerNorm.weight", {2}}, {"LayerNorm.bias", {2}}});
  const Checkpoint other = with_conversions(published({{"x.LayerNorm.gamma", {2}}}), "mixtral");
  EXPECT_TRUE(other.contains("x.LayerNorm.weight")) << "of every model";
  expect_converted("wav2vec2",
                   published({{"wav2vec2.encoder.pos_conv_embed.conv.weight_g", {1, 1, 4}},
                              {"wav2vec2.encoder.pos_conv_embed.conv.weight_v", {2, 2, 4}}}),
                   {{"wav2vec2.encoder.pos_conv_embed.conv.parametrizations.weight.original0", {1, 1, 4}},
                    {"wav2vec2.encoder.pos_conv_embed.conv.parametrizations.weight.original1", {2, 2, 4}}});
  expect_converted("nomic_bert",
                   published({{"emb_ln.weight", {2}},
                              {"encoder.layers.0.attn.Wqkv.weight", {6, 2}},
                              {"encoder.layers.0.attn.out_proj.weight", {2, 2}},
                              {"encoder.layers.0.mlp.fc11.weight", {4, 2}},
                              {"encoder.layers.0.mlp.fc12.weight", {4, 2}},
                              {"encoder.layers.0.mlp.fc2.weight", {2, 4}},
                              {"encoder.layers.0.norm1.weight", {2}},
                              {"encoder.layers.0.norm2.bias", {2}}}),
                   {{"embeddings.LayerNorm.weight", {2}},
                    {"layers.0.self_attn.q_proj.weight", {2, 2}},
                    {"layers.0.self_attn.k_proj.weight", {2, 2}},
                    {"layers.0.self_attn.v_proj.weight", {2, 2}},
                    {"layers.0.self_attn.o_proj.weight", {2, 2}},
                    {"layers.0.mlp.up_proj.weight", {4, 2}},
                    {"layers.0.mlp.gate_proj.weight", {4, 2}},
                    {"layers.0.mlp.down_proj.weight", {2, 4}},
                    {"layers.0.post_attention_layernorm.weight", {2}},
                    {"layers.0.post_mlp_layernorm.bias", {2}}});
  expect_converted("dinov3_vit", published({{"layer.0.norm1.weight", {2}}, {"backbone.layer.1.norm1.weight", {2}}}),
                   {{"model.layer.0.norm1.weight", {2}}, {"backbone.model.layer.1.norm1.weight", {2}}});
  expect_converted("timesfm2_5", published({{"l.0.ff0.weight", {2}}, {"l.0.ff1.weight", {3}}}),
                   {{"l.0.fc1.weight", {2}}, {"l.0.fc2.weight", {3}}});
}

TEST(Conversions, OfEveryTypeAreMapsThatCanBeReversed) {
  const auto types = types_with_conversions();
  EXPECT_EQ(std::ranges::adjacent_find(types), types.end()) << "no type twice";
  for (const std::string_view type : types) {
    const WeightMap map = conversions_of(type);
    EXPECT_FALSE(map.rules.empty()) << type;
    EXPECT_EQ(map.reversed().reversed().rules.size(), map.rules.size()) << type;
  }
}

TEST(Conversions, OfATypeThatHasNoneAreAnErrorWithThoseThatThereAre) {
  const auto error = test::error_of([] { conversions_of("llama"); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), Errc::invalid_argument);
  EXPECT_NE(std::string(error->what()).find("no conversions for the model_type \"llama\""), std::string::npos);
  EXPECT_HINT(conversions_of("llama"), "deepseek_v3");
  EXPECT_HINT(conversions_of("mixtrl"), "did you mean \"mixtral\"?");
}

TEST(Conversions, WithMissingExpertsAreRefusedByName) {
  auto tensors = experts("l.0.mlp", kWords);
  const auto without = [&](const std::string& name) {
    auto rest = tensors;
    std::erase_if(rest, [&](const Named& tensor) { return tensor.name == name; });
    return published(rest);
  };
  const auto refuses = [](const Checkpoint& checkpoint, const char* why) {
    EXPECT_ERROR(with_conversions(checkpoint, "qwen3_moe"), Errc::mismatch, why);
  };
  refuses(without("l.0.mlp.experts.1.up_proj.weight"), "belongs with \"l.0.mlp.experts.1.up_proj.weight\"");
  refuses(without("l.0.mlp.experts.2.up_proj.weight"),
          "is F32 [3, 4, 2], which does not go with \"l.0.mlp.experts.up_proj.weight\", which is F32 [2, 4, 2]");
  refuses(published({{"l.0.mlp.experts.0.gate_proj.weight", {4, 2}}}),
          "transformers' conversions for qwen3_moe: rule 3: tensor \"l.0.mlp.experts.gate_proj.weight\": belongs with "
          "\"l.0.mlp.experts.up_proj.weight\"");
  refuses(published(tensors + std::vector<Named>{{"l.0.mlp.experts.3.up_proj.weight", {5, 2}}}),
          "does not go with \"l.0.mlp.experts.3.up_proj.weight\"");
  EXPECT_ERROR(
      with_conversions(published(tensors + std::vector<Named>{{"l.0.mlp.experts.down_proj", {3, 2, 4}}}), "qwen3_moe"),
      Errc::invalid_argument, "two tensors would be called \"l.0.mlp.experts.down_proj\"");
  EXPECT_ERROR(without_conversions(published({{"l.0.mlp.experts.gate_up_proj", {3, 7, 2}}}), "qwen3_moe"),
               Errc::mismatch, "7 cannot be cut into 2 equal parts");
}

TEST(Conversions, AreChosenByConfigJsonWhichSaysHowManyExpertsThereAre) {
  const test::TempDir folder;
  save(published(experts("model.layers.0.mlp", kWords)), folder / "model.safetensors");
  const auto opened = [&](const char* config) {
    folder.write("config.json", config);
    return open(folder.path());
  };
  EXPECT_TRUE(with_conversions(opened(R"({"model_type": "qwen3_moe", "num_experts": 3})"), "auto")
                  .contains("model.layers.0.mlp.experts.gate_up_proj"));
  EXPECT_TRUE(
      with_conversions(opened(R"({"model_type": "vision", "text_config": {"model_type": "qwen3_moe"}})"), "auto")
          .contains("model.layers.0.mlp.experts.gate_up_proj"));
  EXPECT_TRUE(
      with_conversions(open(folder / "model.safetensors"), "auto").contains("model.layers.0.mlp.experts.down_proj"))
      << "a file in the folder";
  EXPECT_ERROR(with_conversions(opened(R"({"model_type": "qwen3_moe", "num_experts": 4})"), "auto"), Errc::mismatch,
               "belongs with \"model.layers.0.mlp.experts.3.gate_proj.weight\"");
  EXPECT_ERROR(with_conversions(opened(R"({"model_type": "qwen3_moe", "num_experts": 2})"), "auto"), Errc::mismatch,
               "there are 3 of such tensors and not 2");
  EXPECT_ERROR(with_conversions(opened(R"({"model_type": "qwen3_moe", "num_experts": -2})"), "auto"), Errc::malformed,
               "config.json");
  EXPECT_EQ(with_conversions(opened(R"({"model_type": "llama"})"), "auto").size(), 9u) << "there is nothing to do";
  EXPECT_EQ(with_conversions(opened(R"({"model_type": ["qwen3_moe"]})"), "auto").size(), 9u);
  EXPECT_EQ(with_conversions(opened(R"({"model_type": "llama"})"), "qwen2_moe").size(), 2u) << "somebody says it";
  EXPECT_ERROR(with_conversions(opened("{"), "auto"), Errc::malformed, "");
  EXPECT_ERROR(conversion_type(opened(R"({"model_type": "llama"})")), Errc::unsupported, "\"llama\"");
  EXPECT_EQ(conversion_type(opened(R"({"model_type": "olmoe"})")), "olmoe");
  EXPECT_ERROR(conversion_type(published({})), Errc::not_found, "no config.json");
  EXPECT_EQ(with_conversions(published({{"a", {1}}}), "auto").size(), 1u);
}

TEST(Conversions, SayIfTheyChangeNothingAndTakeOutWhatWrappersLeft) {
  const Checkpoint plain = with_conversions(published({{"model.norm.weight", {2}}}), "mixtral");
  ASSERT_EQ(plain.notes.size(), 1u);
  EXPECT_EQ(plain.notes[0].text, "transformers' conversions for mixtral change no tensor");
  const Checkpoint wrapped =
      with_conversions(published({{"module._orig_mod.backbone.layers.0._fsdp_wrapped_module.w", {2}},
                                  {"backbone.embedding.weight", {2}}}),
                       "nemotron_h");
  EXPECT_EQ(names_of(wrapped), (Names{"model.layers.0.w", "model.embeddings.weight"}));
  ASSERT_EQ(wrapped.notes.size(), 1u);
  EXPECT_EQ(wrapped.notes[0].text,
            "wrappers of training put parts into 1 of 2 names: "
            "\"module._orig_mod.backbone.layers.0._fsdp_wrapped_module.w\" is taken for \"backbone.layers.0.w\"");
}

TEST(Conversions, ReadNothingBeforeTheResultIsRead) {
  const test::TempDir folder;
  const std::string in = folder / "in.safetensors", out = folder / "out.safetensors";
  save(published(experts("l.0.mlp", kWords, 5)), in);
  const Checkpoint converted = with_conversions(open(in), "qwen3_moe");
  for (const auto& [name, tensor] : converted) EXPECT_FALSE(tensor.storage()->is_sequential()) << name;
  save(converted, out);
  EXPECT_TRUE(diff(open(in), without_conversions(open(out), "qwen3_moe")).equal());
}

// A part of a quantized weight is no weight.
TEST(Conversions, RefuseTheExpertsOfAQuantizedModel) {
  Checkpoint checkpoint;
  for (int i = 0; i < 2; ++i) {
    const std::string expert = "l.0.mlp.experts." + std::to_string(i) + ".";
    for (const char* word : {"gate_proj", "up_proj", "down_proj"}) {
      checkpoint.tensors.insert(expert + word + ".weight", numbers({128, 128}).to(DType::f8_e4m3));
      checkpoint.tensors.insert(expert + word + ".weight_scale_inv", numbers({1, 1}));
    }
  }
  const test::TempDir folder;
  save(checkpoint, folder / "model.safetensors");
  EXPECT_ERROR(with_conversions(open(folder / "model.safetensors"), "deepseek_v3"), Errc::unsupported,
               "is a part of a weight that is quantized");
}

// GPTQ's parts have names of their own, so that no rule for weights meets them.
TEST(Conversions, RefuseExpertsThatAreKeptInPartsOfOtherNames) {
  Checkpoint checkpoint;
  for (int i = 0; i < 2; ++i) {
    const std::string expert = "model.layers.0.block_sparse_moe.experts." + std::to_string(i) + ".";
    for (const char* word : {"w1.", "w2.", "w3."}) {
      checkpoint.tensors.insert(expert + word + "qweight", numbers({4, 32}).bitcast(DType::i32));
      checkpoint.tensors.insert(expert + word + "qzeros", numbers({1, 4}).bitcast(DType::i32));
      checkpoint.tensors.insert(expert + word + "scales", numbers({1, 32}).to(DType::f16));
    }
  }
  const test::TempDir folder;
  save(checkpoint, folder / "model.safetensors");
  EXPECT_ERROR(with_conversions(open(folder / "model.safetensors"), "mixtral"), Errc::unsupported,
               "is a part of a weight that is quantized with gptq: it cannot be changed by a map");
  const Checkpoint whole = with_conversions(open(folder / "model.safetensors", {.dequantize = true}), "mixtral");
  EXPECT_EQ(whole.at("model.layers.0.mlp.experts.gate_up_proj").shape(), (Shape{2, 64, 32}));
}

TEST(Conversions, ArePartOfLoadingAModel) {
  struct Model {
    Tensor gate_up, down;
    auto fields() {
      return ballast::fields(field("l.0.mlp.experts.gate_up_proj", gate_up), field("l.0.mlp.experts.down_proj", down));
    }
  } model;
  const Checkpoint checkpoint = published(experts("l.0.mlp", kWords));
  EXPECT_ERROR(load_state_dict(model, checkpoint), Errc::mismatch, "missing");
  EXPECT_ERROR(load_state_dict(model, checkpoint, {.conversions = "auto"}), Errc::mismatch, "missing");
  const LoadReport report = load_state_dict(model, checkpoint, {.conversions = "qwen3_moe"});
  EXPECT_TRUE(report.ok());
  EXPECT_TRUE(report.notes.empty());
  EXPECT_EQ(model.gate_up.shape(), Shape({3, 8, 2}));
  EXPECT_ERROR(load_state_dict(model, checkpoint, {.conversions = "llama"}), Errc::invalid_argument, "\"llama\"");

  const test::TempDir folder;
  save(checkpoint, folder / "model.safetensors");
  folder.write("config.json", R"({"model_type":"qwen3_moe","num_experts":3,"limit":Infinity})");
  EXPECT_TRUE(load_state_dict(model, open(folder.path()), {.conversions = "auto"}).ok()) << "its config.json says so";
}

TEST(Conversions, ArePartOfLoadingAModelThatIsDequantized) {
  struct Model {
    Tensor gate_up, down;
    auto fields() {
      return ballast::fields(field("l.0.mlp.experts.gate_up_proj", gate_up), field("l.0.mlp.experts.down_proj", down));
    }
  } model;
  Checkpoint checkpoint;
  for (int i = 0; i < 2; ++i) {
    const std::string expert = "l.0.mlp.experts." + std::to_string(i) + ".";
    for (const char* word : {"gate_proj", "up_proj", "down_proj"}) {
      checkpoint.tensors.insert(expert + word + ".weight", numbers({4, 4}).to(DType::f8_e4m3));
      checkpoint.tensors.insert(expert + word + ".weight_scale_inv", numbers({1, 1}));
    }
  }
  const test::TempDir folder;
  save(checkpoint, folder / "model.safetensors");
  folder.write("config.json", R"({"model_type":"deepseek_v3","n_routed_experts":2})");
  EXPECT_ERROR(load_state_dict(model, open(folder.path()), {.conversions = "auto"}), Errc::unsupported,
               "is a part of a weight that is quantized");
  EXPECT_TRUE(load_state_dict(model, open(folder.path(), {.dequantize = true}), {.conversions = "auto"}).ok());
  EXPECT_EQ(model.gate_up.shape(), Shape({2, 8, 4}));
}

}  // namespace
}  // namespace ballast
