// Weights that other programs keep quantized are recognised, and only copied.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include <ballast/ballast.hpp>

#include "builders/safetensors_file.hpp"
#include "support/expect_error.hpp"
#include "support/files.hpp"
#include "support/fixtures.hpp"
#include "support/vectors.hpp"

namespace ballast {
namespace {

namespace fs = std::filesystem;
using test::SafetensorsFile;
using test::TempDir;

// Lists the vectors, one folder each. Each is opened as it is, and without the configuration beside it.
std::vector<fs::path> quantized_vectors() {
  std::vector<fs::path> folders;
  for (const auto& entry : fs::directory_iterator(test::vector_path("quantized")))
    folders.push_back(entry.path() / "in");
  return folders;
}

void copy_without_configuration(const fs::path& from, const TempDir& to) {
  for (const auto& entry : fs::directory_iterator(from)) {
    const std::string name = entry.path().filename();
    if (!name.ends_with(".json") || name.ends_with(".index.json")) fs::copy(entry.path(), to / name);
  }
}

TEST(Quantization, IsRecognisedInEveryVectorWithAndWithoutItsConfiguration) {
  for (const fs::path& folder : quantized_vectors()) {
    const TempDir alone;
    copy_without_configuration(folder, alone);
    for (const std::string& target : {folder.string(), alone.path()}) {
      const Checkpoint checkpoint = open(target);
      ASSERT_TRUE(checkpoint.quantization) << folder;
      EXPECT_GT(checkpoint.quantization->modules, 0u) << folder;
      EXPECT_GE(checkpoint.quantization->parts.size(), checkpoint.quantization->modules) << folder;
      for (const auto& [name, tensor] : checkpoint.quantization->parts) {
        EXPECT_FALSE(name.ends_with("norm.weight") || name.ends_with("embed_tokens.weight") || name.ends_with(".bias"))
            << folder << " " << name;
      }
    }
  }
}

TEST(Quantization, OfAShardOpenedAloneIsToldByTheIndexBesideIt) {
  const TempDir folder;
  const std::string shard = SafetensorsFile()
                                .tensor("q.weight", "F8_E4M3", {2, 2})
                                .tensor("norm.weight", "F32", {2})
                                .write(folder, "model-00001-of-00002.safetensors");
  const auto write_index = [&](const std::string& other) {
    folder.write("model.safetensors.index.json",
                 R"({"weight_map": {"q.weight": "model-00001-of-00002.safetensors", ")" + other +
                     R"(": "model-00002-of-00002.safetensors"}})");
  };
  for (const char* scale : {"q.weight_scale_inv", "q.weight_scale", "q.scale_weight", "q.qscale_weight"}) {
    write_index(scale);
    const Checkpoint checkpoint = open(shard);
    ASSERT_TRUE(checkpoint.quantization) << scale;
    EXPECT_EQ(checkpoint.quantization->scheme, "fp8");
    EXPECT_EQ(checkpoint.quantization->evidence, "model.safetensors.index.json");
    EXPECT_EQ(checkpoint.quantization->parts.size(), 1u);
    EXPECT_ERROR(cast(checkpoint, DType::f32), Errc::unsupported, "tensor \"q.weight\" is a part of a weight");
  }
  for (const char* other : {"k.weight", "k.weight_scale_inv", "q.bias"}) {
    write_index(other);
    EXPECT_FALSE(open(shard).quantization) << other << ": an F8 tensor may be a weight by itself";
  }
}

TEST(Quantization, IsRefusedByEverythingButACopy) {
  const TempDir folder;
  for (const fs::path& vector : quantized_vectors()) {
    const Checkpoint checkpoint = open(vector);
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::f8_e4m3, DType::q8_0})
      EXPECT_ERROR(cast(checkpoint, dtype), Errc::unsupported, "quantized with") << vector;
    save(checkpoint, folder / "out.safetensors", {.overwrite = true, .durable = false});
    EXPECT_TRUE(diff(checkpoint, open(folder / "out.safetensors")).equal()) << vector;
  }
}

// Some files are there to be refused: returns how many were not.
std::size_t expect_no_quantization(const fs::path& folder) {
  std::size_t opened = 0;
  for (const fs::path& file : test::files_in(folder, "")) {
    try {
      EXPECT_FALSE(open(file).quantization) << file;
      ++opened;
    } catch (const Error&) {
      continue;
    }
  }
  return opened;
}

TEST(Quantization, IsNotSeenInVectorsThatHaveNone) {
  EXPECT_GE(expect_no_quantization(test::vector_path("safetensors")), 16u);
  EXPECT_GE(expect_no_quantization(test::vector_path("torch2")), 85u);
  EXPECT_GE(expect_no_quantization(test::vector_path("gguf")), 23u);
}

TEST(Quantization, IsNotSeenInFixturesThatHaveNone) {
  for (const char* folder : {"benign", "safetensors", "adapters/ollama-discollama", "adapters/peft-monteclora"}) {
    SKIP_WITHOUT_FIXTURES(folder);
    EXPECT_GE(expect_no_quantization(test::fixture_path(folder)), 1u) << folder;
  }
}

// Writes a weight in FP8 with a scale for each of its blocks, and tensors beside it that are not quantized.
std::string write_fp8(const TempDir& folder) {
  return SafetensorsFile()
      .tensor("model.q.weight", "F8_E4M3", {4, 4})
      .tensor("model.q.weight_scale_inv", "F32", {1, 1})
      .tensor("model.q.input_scale", "F32", {1})
      .tensor("model.norm.weight", "F32", {4})
      .write(folder, "model.safetensors");
}

TEST(Quantization, IsNamedByTheConfigurationBesideTheFile) {
  const TempDir folder;
  const std::string file = write_fp8(folder);
  EXPECT_EQ(open(file).quantization->scheme, "fp8");
  EXPECT_EQ(open(file).quantization->evidence, "names and dtypes");
  folder.write("config.json", R"({"quantization_config":{"quant_method":"modelopt","bits":8,"group_size":-1}})");
  for (const std::string& target : {file, folder.path()}) {
    const Quantization found = *open(target).quantization;
    EXPECT_EQ(found.scheme, "modelopt");
    EXPECT_EQ(found.evidence, "config.json");
    EXPECT_EQ(found.bits, 8u);
    EXPECT_EQ(found.group_size, -1);
    EXPECT_EQ(found.modules, 1u);
    EXPECT_EQ(found.parts.size(), 3u);
  }
  folder.write("config.json", "{ this is no JSON");
  EXPECT_EQ(open(file).quantization->scheme, "fp8");
}

TEST(Quantization, OfASchemeThatNoNameTellsIsTakenFromTheConfiguration) {
  const TempDir folder;
  SafetensorsFile()
      .tensor("m.q.odd_codes", "I16", {4, 4})
      .tensor("m.q.odd_table", "F16", {4})
      .tensor("m.q.bias", "F16", {4})
      .tensor("m.norm.weight", "F16", {4})
      .write(folder, "model.safetensors");
  EXPECT_FALSE(open(folder.path()).quantization);
  folder.write("config.json", R"({"text_config":{"quantization_config":{"quant_method":"higgs"}}})");
  const Checkpoint checkpoint = open(folder.path());
  ASSERT_TRUE(checkpoint.quantization);
  EXPECT_EQ(checkpoint.quantization->scheme, "higgs");
  EXPECT_EQ(checkpoint.quantization->parts.size(), 2u);
  EXPECT_ERROR(cast(checkpoint, DType::f32), Errc::unsupported, "quantized with higgs");
}

TEST(Quantization, LeavesAloneWhatOnlyLooksLikeIt) {
  const TempDir folder;
  SafetensorsFile()
      .tensor("plain.weight", "F8_E4M3", {4, 4})  // without a scale, F8 is like any other dtype
      .tensor("x_blocks", "U8", {4, 8})           // not 16 bytes for each block
      .tensor("x_scales", "U8", {4})
      .tensor("y_blocks", "F32", {4, 16})  // not bytes
      .tensor("y_scales", "F32", {4})
      .tensor("scales.weight", "F16", {4})   // a module whose name is "scales"
      .tensor("net.qweight", "F32", {4, 4})  // floats
      .tensor("net.scales", "F32", {4})
      .tensor("attn.bias", "U8", {1, 1, 4, 4})  // the mask of GPT-2
      .tensor("ids", "I64", {4})
      .write(folder, "model.safetensors");
  folder.write("config.json", R"({"model_type":"llama"})");
  const Checkpoint checkpoint = open(folder.path());
  EXPECT_FALSE(checkpoint.quantization);
  EXPECT_EQ(cast(checkpoint, DType::f32).at("plain.weight").dtype(), DType::f32);
}

TEST(Quantization, LetsTheOthersBeCastAndFollowsRenaming) {
  const TempDir folder;
  write_fp8(folder);
  const Checkpoint checkpoint = open(folder.path());
  EXPECT_EQ(
      cast(select(checkpoint, {.include = {"*norm*"}, .exclude = {}}), DType::f16).at("model.norm.weight").dtype(),
      DType::f16);
  EXPECT_EQ(cast(checkpoint, {{"*norm*", DType::f16}}).at("model.norm.weight").dtype(), DType::f16);
  EXPECT_ERROR(cast(checkpoint, {{"*norm*", DType::f16}, {"*", DType::f32}}), Errc::unsupported, "model.q.weight");
  EXPECT_ERROR(cast(select(checkpoint, {.include = {"*input_scale"}, .exclude = {}}), DType::f16), Errc::unsupported,
               "is a part of a weight");
  const Checkpoint renamed = rename(checkpoint, {{"model\\.q\\.weight", "w"}});
  EXPECT_ERROR(cast(renamed, DType::f32), Errc::unsupported, "tensor \"w\" is a part of a weight");
  EXPECT_ERROR(cast(checkpoint, "model.q.weight", DType::f32), Errc::unsupported, "it cannot be cast");
}

TEST(Quantization, KeepsAModelFromLoadingAPartInAnotherDtype) {
  const TempDir folder;
  write_fp8(folder);
  struct Model {
    Tensor weight, scale, input_scale, norm;
    auto fields() {
      return ballast::fields(field("q.weight", weight), field("q.weight_scale_inv", scale),
                             field("q.input_scale", input_scale), field("norm.weight", norm));
    }
  } model;
  EXPECT_TRUE(load_state_dict(model, open(folder.path())).ok());
  EXPECT_EQ(model.weight.dtype(), DType::f8_e4m3);
  LoadStateDictOptions options;
  options.dtype_policy = DTypePolicy::to_one;
  options.dtype = DType::bf16;
  EXPECT_ERROR(load_state_dict(model, open(folder.path()), options), Errc::unsupported,
               "tensor \"q.weight\" is a part of a weight that is quantized with fp8: it cannot be cast");
  EXPECT_EQ(model.norm.dtype(), DType::f32) << "nothing has changed";
}

TEST(Quantization, KeepsMapsFromTakingPartsApart) {
  const TempDir folder;
  write_fp8(folder);
  const auto map =
      WeightMap::parse(R"({"rules":[{"from":"{x}.q.weight","to":["{x}.a.weight","{x}.b.weight"],"split":0}]})");
  EXPECT_ERROR(apply(open(folder.path()), map), Errc::unsupported, "it cannot be changed by a map");
}

TEST(Quantization, KeepsAdaptersFromBeingMergedIntoAPart) {
  const TempDir folder;
  write_fp8(folder);
  folder.write("config.json", "{}");
  const TempDir adapter;
  adapter.write("adapter_config.json",
                R"({"peft_type":"LORA","r":2,"lora_alpha":2,"target_modules":["q"],"task_type":null})");
  SafetensorsFile()
      .tensor("base_model.model.model.q.lora_A.weight", "F32", {2, 4})
      .tensor("base_model.model.model.q.lora_B.weight", "F32", {4, 2})
      .write(adapter, "adapter_model.safetensors");
  const Adapter lora = load_adapter(adapter.path());
  EXPECT_ERROR(merge(open(folder.path()), {lora}), Errc::unsupported, "it cannot be merged into");

  const TempDir gptq;
  SafetensorsFile()
      .tensor("model.q.qweight", "I32", {1, 4})
      .tensor("model.q.scales", "F16", {1, 4})
      .write(gptq, "model.safetensors");
  EXPECT_ERROR(merge(open(gptq.path()), {lora}), Errc::unsupported, "is a weight that is quantized with gptq");
}

}  // namespace
}  // namespace ballast
