// Checkpoints that are not in a file system: every file is found by name, through the Files that a program brings.
#include <gtest/gtest.h>

#include <ballast/open.hpp>
#include <ballast/save.hpp>
#include <ballast/scan.hpp>
#include <ballast/verify.hpp>

#include "builders/gguf_file.hpp"
#include "builders/safetensors_file.hpp"
#include "builders/torch_file.hpp"
#include "support/counting_source.hpp"
#include "support/expect_error.hpp"
#include "support/tensor_values.hpp"

namespace ballast {
namespace {

using test::GgufBuilder;
using test::MemoryFiles;
using test::SafetensorsFile;
using test::text_of;

std::string shard(const std::string& name, const std::string& bytes) {
  return SafetensorsFile().tensor(name, "U8", {bytes.size()}, 0, bytes.size()).data(bytes).text();
}

std::string torch_zip() {
  const auto tensor = test::py::tensor(test::py::storage("Byte", "0", 3), 0, {3}, {1});
  return test::TorchZip().object(test::py::dict({{"w", tensor}})).record("0", "abc").text();
}

std::string gguf_part(std::uint16_t number, std::uint16_t count) {
  GgufBuilder file;
  file.kv_raw("split.no", test::kU16, file.number(number)).kv_raw("split.count", test::kU16, file.number(count));
  file.kv_raw("split.tensors.count", test::kI32, file.number(std::int32_t{count}));
  return file.tensor("t" + std::to_string(number), test::kF32, {4}).text();
}

std::shared_ptr<MemoryFiles> sharded_model() {
  auto files = std::make_shared<MemoryFiles>();
  files->add("store:/model/a.safetensors", shard("x", "xx"));
  files->add("store:/model/b.safetensors", shard("y", "yy"));
  files->add("store:/model/config.json", "{}");
  files->add("store:/model/model.safetensors.index.json",
             R"({"metadata":{},"weight_map":{"x":"a.safetensors","y":"b.safetensors"}})");
  return files;
}

TEST(Files, HoldAShardedFolder) {
  const auto files = sharded_model();
  for (const std::string target : {"store:/model", "store:/model/model.safetensors.index.json"}) {
    const Checkpoint checkpoint = open(target, {.files = files});
    EXPECT_EQ(checkpoint.shards, 2u);
    EXPECT_EQ(text_of(checkpoint.at("y")), "yy");
    EXPECT_EQ(checkpoint.at("x").storage()->location()->file, "store:/model/a.safetensors");
    EXPECT_TRUE(checkpoint.notes.empty());
    EXPECT_TRUE(verify(target, {.open = {.files = files}}).ok());
  }
  EXPECT_ERROR(open("store:/other", {.files = files}), Errc::not_found, "store:/other: is not in the map");
}

TEST(Files, HoldShardsThatAnIndexDecidesBetween) {
  const auto files = sharded_model();
  files->add("store:/model/b.safetensors",
             SafetensorsFile().tensor("x", "U8", {2}, 0, 2).tensor("y", "U8", {2}, 2, 4).data("!!yy").text());
  const Checkpoint checkpoint = open("store:/model", {.files = files});
  EXPECT_EQ(text_of(checkpoint.at("x")), "xx");
  EXPECT_EQ(checkpoint.notes.size(), 1u);
}

TEST(Files, HoldASplitGguf) {
  const auto files = std::make_shared<MemoryFiles>();
  files->add("m-00001-of-00002.gguf", gguf_part(0, 2));
  files->add("m-00002-of-00002.gguf", gguf_part(1, 2));
  const Checkpoint whole = open("m-00002-of-00002.gguf", {.files = files});
  EXPECT_EQ(whole.size(), 2u);
  EXPECT_EQ(whole.files.size(), 2u);
  EXPECT_EQ(open("m-00002-of-00002.gguf", {.single = true, .files = files}).size(), 1u);

  const auto half = std::make_shared<MemoryFiles>();
  half->add("m-00001-of-00002.gguf", gguf_part(0, 2));
  EXPECT_ERROR(open("m-00001-of-00002.gguf", {.files = half}), Errc::not_found, "part 2 of 2 is missing");
}

TEST(Files, HoldATorchZip) {
  const auto files = std::make_shared<MemoryFiles>();
  files->add("folder/pytorch_model.bin", torch_zip());
  for (const std::string target : {"folder", "folder/pytorch_model.bin"}) {
    const Checkpoint checkpoint = open(target, {.cache = Cache::always, .files = files});
    EXPECT_EQ(text_of(checkpoint.at("w")), "abc");
    EXPECT_EQ(checkpoint.format, Format::torch_zip) << "nothing that is elsewhere is kept in a cache";
    EXPECT_TRUE(checkpoint.notes.empty());
  }
  EXPECT_TRUE(scan("folder", {{.files = files}, {}}).is_safe());
}

TEST(Files, AreAskedForTheConfigurationOfQuantizedWeights) {
  const auto files = std::make_shared<MemoryFiles>();
  files->add("q/config.json", R"({"quantization_config":{"quant_method":"gptq","bits":4}})");
  files->add("q/model.safetensors", SafetensorsFile()
                                        .tensor("m.qweight", "I32", {2})
                                        .tensor("m.qzeros", "I32", {2})
                                        .tensor("m.scales", "F16", {2})
                                        .tensor("m.g_idx", "I32", {2})
                                        .text());
  for (const std::string target : {"q", "q/model.safetensors"}) {
    const Checkpoint checkpoint = open(target, {.files = files});
    ASSERT_TRUE(checkpoint.quantization);
    EXPECT_EQ(checkpoint.quantization->bits, 4u);
    EXPECT_EQ(checkpoint.quantization->evidence, "config.json");
  }
}

TEST(OpenSource, ReadsOneFileFromWhereverItsBytesAre) {
  const auto source = std::make_shared<test::CountingSource>(test::source_named("here", torch_zip()));
  const Checkpoint checkpoint = open(source);
  EXPECT_EQ(checkpoint.target, "here");
  EXPECT_EQ(checkpoint.files.front().path, "here");
  EXPECT_EQ(text_of(checkpoint.at("w")), "abc");
  EXPECT_EQ(checkpoint.at("w").storage()->location()->file, "here");
}

TEST(OpenSource, TakesAPartOfAGgufForAFileOfItsOwn) {
  EXPECT_EQ(open(test::source_named("m-00001-of-00002.gguf", gguf_part(0, 2))).size(), 1u);
}

TEST(OpenSource, IsScannedBeforeItIsSaved) {
  const auto evil = test::py::call("os", "system", {test::py::text("true")});
  const auto tensor = test::py::tensor(test::py::storage("Byte", "0", 3), 0, {3}, {1});
  const std::string file = test::TorchZip()
                               .object(test::py::dict({{"w", tensor}}))
                               .record("0", "abc")
                               .member("extra.pkl", test::py::pickle(evil))
                               .text();
  const Checkpoint checkpoint = open(test::source_named("there", file));
  EXPECT_ERROR(plan_save(checkpoint, "out.safetensors"), Errc::unsafe, "there!/archive/extra.pkl: names \"os.system\"");
}

TEST(OpenSource, HasNoKeyToResumeAJobBy) {
  const std::string file = SafetensorsFile().tensor("a", "U8", {4}).tensor("b", "U8", {4}).text();
  const Checkpoint checkpoint = open(test::source_named("CMakeLists.txt", file));  // this name is also that of a file
  EXPECT_EQ(plan_save(checkpoint, "out.safetensors", {.max_shard_bytes = 4}).key, "");
}

}  // namespace
}  // namespace ballast
