// Weights in forms of fewer bits: compared with what other programs wrote, and with plain loops; odd and hostile ones.
#include <gtest/gtest.h>

#include <ballast/open.hpp>
#include <ballast/quantize.hpp>
#include <ballast/save.hpp>
#include <ballast/sidecars.hpp>
#include <ballast/transform.hpp>

#include <bit>
#include <cmath>
#include <fstream>
#include <limits>
#include <random>
#include <thread>

#include "builders/safetensors_file.hpp"
#include "builders/temp_dir.hpp"
#include "support/expect_error.hpp"
#include "support/fake_storages.hpp"
#include "support/tensor_values.hpp"
#include "support/vectors.hpp"

namespace ballast {
namespace {

using test::bytes_of;
using test::names_of;
using test::values_of;
using Floats = std::vector<float>;
using Names = std::vector<std::string>;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInfinity = std::numeric_limits<float>::infinity();
const std::string kLayer = "model.layers.0.mlp.up_proj.weight";

Tensor floats(Shape shape, const Floats& values) {
  return Tensor::from_values<float>(DType::f32, std::move(shape), values);
}

Tensor random_matrix(std::uint64_t rows, std::uint64_t columns, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> values;
  Floats all(rows * columns);
  for (float& value : all) value = values(random);
  return floats({rows, columns}, all);
}

Checkpoint model_of(std::initializer_list<std::pair<std::string, Tensor>> tensors) {
  Checkpoint checkpoint;
  for (const auto& [name, tensor] : tensors) checkpoint.tensors.insert(name, tensor);
  return checkpoint;
}

Checkpoint quantized(const Tensor& weight, WeightScheme scheme) {
  return quantize(model_of({{kLayer, weight}}), {scheme, {}});
}

std::string notes_of(const Checkpoint& checkpoint) {
  std::string text;
  for (const Note& note : checkpoint.notes) text += note.text + "\n";
  return text;
}

// What the codes of FP8 stand for, by plain arithmetic.
Floats fp8_values(const Checkpoint& checkpoint, const std::string& name) {
  const Tensor& codes = checkpoint.at(name);
  const Tensor& blocks = checkpoint.at(name + "_scale_inv");
  const Floats wide = values_of(codes), scales = values_of(blocks);
  Floats values(wide.size());
  const std::uint64_t columns = codes.shape()[1];
  for (std::size_t i = 0; i < wide.size(); ++i)
    values[i] = wide[i] * scales[i / columns / 128 * blocks.shape()[1] + i % columns / 128];
  return values;
}

Floats nf4_values(const Checkpoint& checkpoint, const std::string& name, std::size_t count) {
  const auto codes = values_of<std::uint8_t>(checkpoint.at(name));
  const Floats map = values_of(checkpoint.at(name + ".quant_map")), scales = values_of(checkpoint.at(name + ".absmax"));
  Floats values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = map[i % 2 == 0 ? codes[i / 2] >> 4 : codes[i / 2] & 15] * scales[i / 64];
  return values;
}

Floats mxfp4_values(const Tensor& codes, const Tensor& scales) {
  constexpr float kValues[] = {0, 0.5F, 1, 1.5F, 2, 3, 4, 6};
  const auto bytes = values_of<std::uint8_t>(codes), exponents = values_of<std::uint8_t>(scales);
  Floats values(bytes.size() * 2);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const unsigned code = i % 2 == 0 ? bytes[i / 2] & 15 : bytes[i / 2] >> 4;
    values[i] = std::ldexp(kValues[code & 7], exponents[i / 32] - 127) * (code > 7 ? -1.0F : 1.0F);
  }
  return values;
}

// The model that a vector stands for, and what the program wrote of it.
struct Vector {
  Checkpoint expected, in;
  explicit Vector(const std::string& name)
      : expected(open(test::vector_path("quantized/" + name + "/expected.safetensors"))),
        in(open(test::vector_path("quantized/" + name + "/in"))) {}
};

void expect_same(const Checkpoint& got, const Checkpoint& want, const Names& but = {}) {
  EXPECT_EQ(got.size(), want.size());
  for (const auto& [name, tensor] : want) {
    ASSERT_TRUE(got.contains(name)) << name;
    EXPECT_EQ(got.at(name).dtype(), tensor.dtype()) << name;
    const bool is_other = std::ranges::any_of(but, [name = name](const auto& end) { return name.ends_with(end); });
    if (is_other) continue;
    EXPECT_EQ(got.at(name).shape(), tensor.shape()) << name;
    EXPECT_EQ(bytes_of(got.at(name)), bytes_of(tensor)) << name;
  }
}

TEST(Quantize, GivesTheBytesOfBitsandbytes) {
  const Vector vector("bnb-nf4");
  expect_same(quantize(vector.expected, {WeightScheme::nf4, {}}), vector.in);
}

// What is quantized here are the values with scales that were rounded already, so their mean is another.
TEST(Quantize, GivesTheNestedScalesOfBitsandbytes) {
  const Vector vector("bnb-nf4-double");
  const Checkpoint got = quantize(vector.expected, {WeightScheme::nf4_double, {}});
  expect_same(got, vector.in, {".absmax", ".nested_absmax", "__nf4"});
  for (const std::string& name : names_of(vector.in)) {
    if (!name.ends_with(".nested_absmax")) continue;
    const std::string weight(name.substr(0, name.size() - std::string_view(".nested_absmax").size()));
    const auto scales_of = [&](const Checkpoint& checkpoint) {
      const Floats map = values_of(checkpoint.at(weight + ".nested_quant_map"));
      const Floats scales = values_of(checkpoint.at(weight + ".nested_absmax"));
      const Json state = Json::parse(test::text_of(checkpoint.at(weight + ".quant_state.bitsandbytes__nf4")));
      const auto mean = static_cast<float>(state.at("nested_offset").number());
      Floats all;
      for (const std::uint8_t code : values_of<std::uint8_t>(checkpoint.at(weight + ".absmax")))
        all.push_back(map[code] * scales[all.size() / 256] + mean);
      return all;
    };
    const Floats scales_got = scales_of(got), wanted = scales_of(vector.in);
    ASSERT_EQ(scales_got.size(), wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(scales_got[i] / wanted[i], 1, 1e-3) << i;
  }
}

TEST(Quantize, GivesTheBytesOfCompressedTensors) {
  const Vector vector("ct-mxfp4");
  expect_same(quantize(vector.expected, {WeightScheme::mxfp4, {}}), vector.in);
}

// The scales of the vector are not those that its values have after they were rounded to BF16.
TEST(Quantize, GivesTheCodesOfFp8) {
  const Vector vector("fp8-block128-ragged");
  const Checkpoint got = quantize(vector.expected, {WeightScheme::fp8_block, {}});
  expect_same(got, vector.in, {"_scale_inv"});
  for (const auto& [name, tensor] : vector.in) {
    if (!name.ends_with("_scale_inv")) continue;
    const Floats scales = values_of(got.at(name)), wanted = values_of(tensor);
    for (std::size_t i = 0; i < scales.size(); ++i) EXPECT_NEAR(scales[i] / wanted[i], 1, 1.0 / 256) << name;
  }
  EXPECT_NE(notes_of(got).find("no multiples of 128 end in smaller blocks"), std::string::npos);
}

// The vector has infinite values, which come from its exponents of 254 and 255: they are made zero here.
TEST(Quantize, TransposesTheExpertsOfGptOss) {
  const Vector vector("mxfp4-gpt-oss");
  Checkpoint model = vector.expected;
  EXPECT_ERROR(bytes_of(quantize(model, {WeightScheme::mxfp4, {}}).at("model.layers.0.mlp.experts.down_proj_blocks")),
               Errc::unsupported, "is infinite, which cannot be encoded as MXFP4");
  const std::string name = "model.layers.0.mlp.experts.down_proj";
  const Shape shape = model.at(name).shape();
  Floats values = values_of(model.at(name));
  for (float& value : values) value = std::isfinite(value) ? value : 0;
  model.tensors.replace(name, floats(shape, values));

  const Checkpoint got = quantize(model, {WeightScheme::mxfp4, {}});
  EXPECT_EQ(names_of(got).size(), vector.in.size());
  for (const auto& [part, tensor] : vector.in) {
    EXPECT_EQ(got.at(part).dtype(), tensor.dtype()) << part;
    EXPECT_EQ(got.at(part).shape(), tensor.shape()) << part;
  }
  const Floats back = mxfp4_values(got.at(name + "_blocks"), got.at(name + "_scales"));
  const std::uint64_t rows = shape[1], columns = shape[2];
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t expert = i / (rows * columns), row = i / columns % rows, column = i % columns;
    EXPECT_EQ(back[(expert * columns + column) * rows + row], values[i]) << i;
  }
  EXPECT_EQ(got.quantization->config.at("quant_method").text(), "mxfp4");
  EXPECT_EQ(got.quantization->config.at("modules_to_not_convert"),
            Json(Json::List{"lm_head", "model.embed_tokens", "model.layers.*.mlp.router"}));
}

TEST(Quantize, LosesNoMoreThanHalfAStep) {
  for (const auto& [rows, columns] : {std::pair{1, 1}, {128, 128}, {129, 1}, {1, 300}, {200, 300}, {3, 1000}}) {
    const Tensor weight = random_matrix(static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(columns));
    const Floats values = values_of(weight);
    const Floats fp8 = fp8_values(quantized(weight, WeightScheme::fp8_block), kLayer);
    const Floats nf4 = nf4_values(quantized(weight, WeightScheme::nf4), kLayer, values.size());
    const float largest = std::abs(*std::ranges::max_element(values, {}, [](float v) { return std::abs(v); }));
    for (std::size_t i = 0; i < values.size(); ++i) {
      EXPECT_LE(std::abs(fp8[i] - values[i]), std::max(std::abs(values[i]) / 16, largest / 448 / 1024) * 1.001F);
      EXPECT_LE(std::abs(nf4[i] - values[i]), largest * 0.1521F);  // half of the widest gap, at -1
    }
  }
}

TEST(Quantize, GivesEveryRangeOfAPart) {
  const Tensor weight = random_matrix(300, 260, 7);
  for (const WeightScheme scheme : {WeightScheme::fp8_block, WeightScheme::nf4, WeightScheme::nf4_double}) {
    const Checkpoint whole = quantized(weight, scheme);
    for (const auto& [name, tensor] : whole) {
      const auto bytes = bytes_of(tensor);
      // A new one each time, so that nothing is known of its scales.
      const Checkpoint other = quantized(weight, scheme);
      for (std::uint64_t first = 0; first < bytes.size(); first += bytes.size() / 7 + 1) {
        const std::uint64_t size = std::min<std::uint64_t>(bytes.size() / 9 + 1, bytes.size() - first);
        std::vector<std::byte> some(size);
        other.at(name).read(first, some);
        EXPECT_TRUE(std::ranges::equal(some, std::span(bytes).subspan(first, size))) << name << " at " << first;
      }
    }
  }
}

TEST(Quantize, MayBeReadByManyThreads) {
  const Tensor weight = random_matrix(512, 384, 8);
  for (const WeightScheme scheme : {WeightScheme::fp8_block, WeightScheme::nf4_double}) {
    const Checkpoint once = quantized(weight, scheme), shared = quantized(weight, scheme);
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        for (const auto& [name, tensor] : shared) EXPECT_EQ(bytes_of(tensor), bytes_of(once.at(name)));
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
}

// A stream that is read from its beginning for every row of blocks would be read hundreds of times.
TEST(Quantize, ReadsAStreamInOrder) {
  const Tensor plain = random_matrix(1280, 130, 9);
  const auto storage = std::make_shared<test::DeflatedStorage>(bytes_of(plain));
  const Tensor weight(DType::f32, plain.shape(), storage);
  const Checkpoint got = quantized(weight, WeightScheme::fp8_block), want = quantized(plain, WeightScheme::fp8_block);
  for (const auto& [name, tensor] : want) EXPECT_EQ(bytes_of(got.at(name)), bytes_of(tensor));
  EXPECT_LE(storage->restarts(), 3u);
}

TEST(Quantize, KeepsWhatIsNearNothing) {
  constexpr float kTiny = std::numeric_limits<float>::denorm_min();
  const Tensor zeros = floats({128, 128}, Floats(128 * 128)), tiny = floats({128, 128}, Floats(128 * 128, kTiny));
  for (const Tensor& weight : {zeros, tiny}) {
    const Checkpoint fp8 = quantized(weight, WeightScheme::fp8_block);
    EXPECT_EQ(fp8_values(fp8, kLayer), Floats(128 * 128));
    EXPECT_TRUE(std::isnormal(values_of(fp8.at(kLayer + "_scale_inv"))[0]));
    for (const float value : nf4_values(quantized(weight, WeightScheme::nf4), kLayer, 128 * 128))
      EXPECT_LE(std::abs(value), kTiny);
    const Checkpoint mxfp4 = quantized(weight, WeightScheme::mxfp4);
    EXPECT_EQ(mxfp4_values(mxfp4.at(kLayer + "_packed"), mxfp4.at(kLayer + "_scale")), Floats(128 * 128));
  }
  EXPECT_EQ(values_of(quantized(zeros, WeightScheme::fp8_block).at(kLayer + "_scale_inv")), Floats{1});
}

TEST(Quantize, KeepsTheLargestNumbers) {
  constexpr float kMost = std::numeric_limits<float>::max();
  const Tensor weight = floats({2, 64}, Floats(128, -kMost));
  for (const float value : fp8_values(quantized(weight, WeightScheme::fp8_block), kLayer))
    EXPECT_NEAR(value / -kMost, 1, 1e-6);
  EXPECT_EQ(nf4_values(quantized(weight, WeightScheme::nf4), kLayer, 128), Floats(128, -kMost));
  const Checkpoint mxfp4 = quantized(weight, WeightScheme::mxfp4);
  for (const float value : mxfp4_values(mxfp4.at(kLayer + "_packed"), mxfp4.at(kLayer + "_scale")))
    EXPECT_EQ(value, -0x1p127F * 1.5F);  // the next number is infinite in F32
}

TEST(Quantize, RefusesValuesThatAreNotFiniteWhenTheyAreRead) {
  for (const float odd : {kNan, kInfinity, -kInfinity}) {
    Floats values(130 * 160, 1.0F);
    values[129 * 160 + 2] = odd;
    for (std::size_t i = 0; i < kWeightSchemeNames.size(); ++i) {
      const Checkpoint got = quantized(floats({130, 160}, values), static_cast<WeightScheme>(i));
      const std::string text = std::isnan(odd) ? "the value at [129, 2] is NaN" : "the value at [129, 2] is infinite";
      EXPECT_ERROR(bytes_of(got.at(names_of(got)[0])), Errc::unsupported, text);
      EXPECT_ERROR(bytes_of(got.at(names_of(got)[1])), Errc::unsupported, text);
    }
  }
}

TEST(Quantize, TakesEveryRealDType) {
  const Tensor weight = random_matrix(64, 256, 3);
  for (const DType dtype : {DType::f64, DType::f16, DType::bf16, DType::q8_0}) {
    const Tensor other = weight.to(dtype);
    const Checkpoint got = quantized(other, WeightScheme::nf4);
    EXPECT_EQ(bytes_of(got.at(kLayer)), bytes_of(quantized(other.to(DType::f32), WeightScheme::nf4).at(kLayer)));
    const bool is_kept = dtype == DType::f16 || dtype == DType::bf16;
    EXPECT_EQ(got.quantization->dtype, is_kept ? dtype : DType::f32);
  }
}

TEST(Quantize, TakesAnOddNumberOfValues) {
  const Tensor weight = random_matrix(3, 7);
  const Checkpoint got = quantized(weight, WeightScheme::nf4);
  EXPECT_EQ(got.at(kLayer).shape(), Shape({11, 1}));
  EXPECT_EQ(got.at(kLayer + ".absmax").shape(), Shape({1}));
  EXPECT_EQ(std::to_integer<int>(bytes_of(got.at(kLayer))[10]) & 15, 7);  // behind the last value
}

TEST(Quantize, TakesAViewThatIsNotContiguous) {
  const Tensor weight = random_matrix(96, 160), view = weight.transpose();
  const Tensor copy = view.contiguous();
  for (std::size_t i = 0; i < kWeightSchemeNames.size(); ++i) {
    const auto scheme = static_cast<WeightScheme>(i);
    const Checkpoint got = quantized(view, scheme), want = quantized(copy, scheme);
    for (const auto& [name, tensor] : want) EXPECT_EQ(bytes_of(got.at(name)), bytes_of(tensor)) << name;
  }
}

TEST(Quantize, TakesTensorsWithoutData) {
  const std::uint64_t rows = std::uint64_t{1} << 20, columns = std::uint64_t{1} << 14;
  const Tensor weight(DType::bf16, {rows, columns}, meta_storage(rows * columns * 2));
  for (std::size_t i = 0; i < kWeightSchemeNames.size(); ++i) {
    const Checkpoint got = quantized(weight, static_cast<WeightScheme>(i));
    EXPECT_FALSE(got.at(names_of(got)[0]).has_data());
  }
  EXPECT_EQ(quantized(weight, WeightScheme::fp8_block).at(kLayer + "_scale_inv").shape(), Shape({8192, 128}));
}

TEST(Quantize, TakesTheLinearLayersInsideOfTheBlocks) {
  const Tensor matrix = random_matrix(32, 32);
  const Names left = {"lm_head.weight",
                      "model.embed_tokens.weight",
                      "model.layers.0.input_layernorm.weight",
                      "model.layers.0.mlp.gate.weight",
                      "model.layers.0.mlp.shared_expert_gate.weight",
                      "model.layers.0.mlp.router.classifier.weight",
                      "model.layers.0.attn.relative_attention_bias.weight",
                      "model.layers.0.shared_head.head.weight",
                      "model.layers.0.attn.A_log",
                      "visual.proj.weight"};
  const Names taken = {"model.layers.0.mlp.gate_proj.weight", "model.layers.0.mlp.experts.7.w1.weight",
                       "encoder.block.3.layer.0.SelfAttention.q.weight"};
  Checkpoint model;
  for (const Names& names : {left, taken})
    for (const std::string& name : names) model.tensors.insert(name, matrix);
  model.tensors.insert("model.layers.0.vector.weight", floats({32}, Floats(32)));
  model.tensors.insert("model.layers.0.none.weight", floats({0, 32}, {}));
  model.tensors.insert("model.layers.0.stack.weight", floats({1, 32, 32}, Floats(1024)));
  const Checkpoint got = quantize(model, {WeightScheme::fp8_block, {}});
  EXPECT_EQ(got.quantization->modules, 3u);
  EXPECT_EQ(got.size(), model.size() + 3);
  for (const std::string& name : left) EXPECT_EQ(got.at(name).dtype(), DType::f32) << name;
  for (const std::string& name : taken) EXPECT_EQ(got.at(name).dtype(), DType::f8_e4m3) << name;
  EXPECT_NE(notes_of(got).find("quantized with fp8-block: 3 weights; matrices that are left as they are: "
                               "\"lm_head.weight\", "),
            std::string::npos)
      << notes_of(got);
}

TEST(Quantize, Fp8OfStacksOfExpertsIsRefusedUnlessTheyAreNotNamed) {
  const Tensor stack = floats({2, 32, 32}, Floats(2048));
  const Checkpoint model =
      model_of({{kLayer, random_matrix(32, 32)}, {"model.layers.0.mlp.experts.gate_up_proj", stack}});
  EXPECT_ERROR(quantize(model, {WeightScheme::fp8_block, {}}), Errc::unsupported,
               "\"model.layers.0.mlp.experts.gate_up_proj\" is a stack of experts");
  const Checkpoint got = quantize(model, {WeightScheme::fp8_block, {"*.weight"}});
  EXPECT_EQ(got.at("model.layers.0.mlp.experts.gate_up_proj").dtype(), DType::f32);
  EXPECT_EQ(got.at(kLayer).dtype(), DType::f8_e4m3);
}

TEST(Quantize, SaysThatStacksOfExpertsAreLeft) {
  const Checkpoint model = model_of({{kLayer, random_matrix(32, 32)},
                                     {"model.layers.0.mlp.experts.gate_up_proj", floats({2, 32, 32}, Floats(2048))}});
  for (const WeightScheme scheme : {WeightScheme::nf4, WeightScheme::mxfp4}) {
    const Checkpoint got = quantize(model, {scheme, {}});
    ASSERT_FALSE(got.notes.empty());
    EXPECT_NE(got.notes.front().text.find("left as they are: \"model.layers.0.mlp.experts.gate_up_proj\""),
              std::string::npos)
        << got.notes.front().text;
  }
}

TEST(Quantize, TakesTheWeightsThatAreNamed) {
  const Tensor matrix = random_matrix(32, 32);
  const Checkpoint model = model_of({{"lm_head.weight", matrix}, {kLayer, matrix}, {"fc.weight", matrix}});
  const Checkpoint got = quantize(model, {WeightScheme::nf4, {"fc.*", "lm_head.weight"}});
  EXPECT_EQ(got.quantization->modules, 2u);
  EXPECT_EQ(got.at(kLayer).dtype(), DType::f32);
  EXPECT_EQ(got.quantization->config.at("llm_int8_skip_modules"), Json(Json::List{"model.layers.0.mlp.up_proj"}));
  EXPECT_ERROR(quantize(model, {WeightScheme::nf4, {"nothing"}}), Errc::unsupported,
               "no weight of those names can be quantized with nf4");
}

// transformers takes an entry for the beginning of a name, or for its end.
TEST(Quantize, NamesWholeModulesWhereOthersBeginAlike) {
  const Tensor matrix = random_matrix(32, 32);
  const Checkpoint model = model_of({{"layers.0.gate.weight", matrix},
                                     {"layers.0.gate_proj.weight", matrix},
                                     {"proj.weight", matrix},
                                     {"layers.1.gate.weight", matrix}});
  EXPECT_EQ(quantize(model, {WeightScheme::fp8_block, {}}).quantization->config.at("modules_to_not_convert"),
            Json(Json::List{"^layers.0.gate$", "layers.1.gate", "lm_head", "^proj$"}));
}

TEST(Quantize, LeavesRowsThatAreNotWholeBlocks) {
  const Checkpoint model = model_of({{kLayer, random_matrix(4, 32)}, {"layers.1.w.weight", random_matrix(4, 33)}});
  const Checkpoint got = quantize(model, {WeightScheme::mxfp4, {}});
  EXPECT_EQ(got.at("layers.1.w.weight").dtype(), DType::f32);
  EXPECT_EQ(got.quantization->config.at("ignore"), Json(Json::List{"layers.1.w", "lm_head"}));
  EXPECT_NE(notes_of(got).find("not whole blocks of 32 are left as they are: \"layers.1.w.weight\""),
            std::string::npos);
}

// GPT-2's own layer has its inputs first, and readers would take it for a transposed one.
TEST(Quantize, LeavesTheLayersOfGpt2) {
  const Checkpoint model = model_of({{"h.0.attn.c_attn.weight", random_matrix(32, 96)},
                                     {"h.0.attn.c_attn.bias", floats({96}, Floats(96))},
                                     {"h.0.attn.c_proj.weight", random_matrix(32, 32)}});
  EXPECT_ERROR(quantize(model, {WeightScheme::nf4, {}}), Errc::unsupported, "no weight is a linear layer");
  const Checkpoint other =
      model_of({{"h.0.attn.c_attn.weight", random_matrix(96, 32)}, {"h.0.attn.c_attn.bias", floats({96}, Floats(96))}});
  EXPECT_EQ(quantize(other, {WeightScheme::nf4, {}}).quantization->modules, 1u);
}

TEST(Quantize, MakesTheSamePartsForATensorOfTwoNames) {
  const Tensor matrix = random_matrix(32, 32);
  const Checkpoint got = quantize(model_of({{"a.0.weight", matrix}, {"a.1.weight", matrix}}), {WeightScheme::nf4, {}});
  EXPECT_EQ(got.at("a.0.weight").storage(), got.at("a.1.weight").storage());
}

TEST(Quantize, RefusesANameThatIsThereAlready) {
  const Checkpoint model =
      model_of({{kLayer, random_matrix(32, 32)}, {kLayer + "_scale_inv", floats({1, 1}, Floats(1))}});
  EXPECT_ERROR(quantize(model, {WeightScheme::fp8_block, {}}), Errc::invalid_argument, "is there already");
}

TEST(Quantize, RefusesWhatIsQuantizedAlready) {
  const Checkpoint model = open(test::vector_path("quantized/bnb-nf4/in"));
  EXPECT_ERROR(quantize(model, {WeightScheme::nf4, {}}), Errc::unsupported,
               "is a part of a weight that is quantized with bitsandbytes: it cannot be quantized with nf4");
  const Checkpoint once = quantized(random_matrix(32, 32), WeightScheme::fp8_block);
  EXPECT_ERROR(quantize(once, {WeightScheme::nf4, {}}), Errc::unsupported, "is a part of a weight");
  EXPECT_ERROR(cast(once, DType::bf16), Errc::unsupported, "is a part of a weight");
}

TEST(Quantize, IsRecognizedWhenItIsOpened) {
  const test::TempDir dir;
  const std::pair<WeightScheme, std::string_view> schemes[] = {{WeightScheme::fp8_block, "fp8"},
                                                               {WeightScheme::nf4, "bitsandbytes"},
                                                               {WeightScheme::nf4_double, "bitsandbytes"},
                                                               {WeightScheme::mxfp4, "compressed-tensors"}};
  for (const auto& [scheme, method] : schemes) {
    const Checkpoint made = quantized(random_matrix(64, 64), scheme);
    EXPECT_EQ(made.quantization->scheme, method);
    const std::string path = dir.path() + "/" + std::string(name(scheme)) + ".safetensors";
    save(made, path);
    const Checkpoint got = open(path);
    ASSERT_TRUE(got.quantization.has_value()) << path;
    EXPECT_EQ(got.quantization->scheme, method);
    EXPECT_EQ(got.quantization->modules, 1u);
    EXPECT_EQ(got.quantization->parts.size(), got.size());
  }
}

TEST(Quantize, PutsItsConfigurationIntoConfigJson) {
  const test::TempDir dir;
  const std::string in = dir.path() + "/in", out = dir.path() + "/out/";
  std::filesystem::create_directories(in);
  std::filesystem::create_directories(out);
  const Checkpoint plain = model_of({{kLayer, random_matrix(32, 32).to(DType::bf16)}});
  save(plain, in + "/model.safetensors");
  std::ofstream(in + "/config.json") << "{\n  \"a\": 1,\n  \"torch_dtype\": \"bfloat16\"\n}\n";
  std::ofstream(in + "/quantize_config.json") << "{}";
  const Checkpoint model = open(in), small = quantize(model, {WeightScheme::fp8_block, {}});
  SavePlan plan = plan_save(small, out);
  add_sidecars(plan, find_sidecars(model), model, small);
  execute(plan);
  std::ifstream config(out + "config.json");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(config), {}), R"({
  "a": 1,
  "torch_dtype": "bfloat16",
  "quantization_config": {
    "quant_method": "fp8",
    "fmt": "e4m3",
    "activation_scheme": "dynamic",
    "weight_block_size": [
      128,
      128
    ],
    "modules_to_not_convert": [
      "lm_head"
    ]
  }
}
)");
  EXPECT_FALSE(std::filesystem::exists(out + "quantize_config.json"));
}

TEST(Quantize, KnowsItsSchemesByName) {
  for (std::size_t i = 0; i < kWeightSchemeNames.size(); ++i)
    EXPECT_EQ(weight_scheme(kWeightSchemeNames[i]), static_cast<WeightScheme>(i));
  EXPECT_EQ(weight_scheme("fp8"), std::nullopt);
}

}  // namespace
}  // namespace ballast
