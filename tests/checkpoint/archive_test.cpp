// Archives that hold checkpoints: each member's tensors under its name.
#include <gtest/gtest.h>

#include <ballast/open.hpp>

#include "builders/gguf_file.hpp"
#include "builders/safetensors_file.hpp"
#include "builders/torch_file.hpp"
#include "support/expect_error.hpp"
#include "support/tensor_values.hpp"

namespace ballast {
namespace {

namespace py = test::py;
using test::raw;
using test::TorchZip;
using test::values_of;
using test::ZipFile;

std::string inner_zip(float value = 1) {
  TorchZip zip;
  zip.object(py::dict({{"w", py::tensor(py::storage("Float", "0", 1), 0, {1}, {1})}, {"epoch", py::integer(3)}}))
      .record("0", raw<float>({value}));
  return zip.text();
}

TEST(Archive, PutsTheMembersNameBeforeItsTensors) {
  const Checkpoint checkpoint = test::open_text(ZipFile()
                                                    .stored("policy.pth", inner_zip(1))
                                                    .deflated("policy.optimizer.pth", inner_zip(2))
                                                    .stored("README.md", "hello")
                                                    .stored("folder/", "")
                                                    .text());
  EXPECT_EQ(checkpoint.format, Format::archive);
  EXPECT_EQ(checkpoint.size(), 2u);
  EXPECT_EQ(values_of<float>(checkpoint.at("policy.pth/w")), std::vector<float>{1});
  EXPECT_EQ(values_of<float>(checkpoint.at("policy.optimizer.pth/w")), std::vector<float>{2});
  EXPECT_EQ(checkpoint.values.at(0).path, "policy.pth/epoch");
}

TEST(Archive, HoldsCheckpointsOfEveryKind) {
  const std::string pickle = py::pickle(py::dict({{"a", py::integer(1)}}));
  const Checkpoint checkpoint = test::open_text(ZipFile().stored("a.pkl", pickle).stored("b.pt", inner_zip()).text());
  EXPECT_EQ(checkpoint.values.at(0).path, "a.pkl/a");
  EXPECT_TRUE(checkpoint.contains("b.pt/w"));
}

std::string small_gguf() {
  constexpr test::GgmlType kNewerThanUs{200, 1, 1};
  return test::GgufBuilder()
      .kv("general.architecture", "llama")
      .kv("llama.block_count", 2u)
      .array("tokenizer.ggml.tokens", test::kU8, 3, "abc")
      .tensor("w", test::kF32, {2})
      .tensor("odd", kNewerThanUs, {4})
      .text();
}

TEST(Archive, KeepsAllThatAGgufInItSays) {
  const std::string gguf = small_gguf();
  const Checkpoint alone = test::open_text(gguf);
  const Checkpoint checkpoint = test::open_text(ZipFile().stored("a/m.gguf", gguf).stored("b.pt", inner_zip()).text());
  EXPECT_EQ(checkpoint.typed_metadata.size(), alone.typed_metadata.size());
  EXPECT_EQ(checkpoint.typed_metadata.find_string("a/m.gguf/general.architecture"), "llama");
  EXPECT_EQ(checkpoint.typed_metadata.find_uint("a/m.gguf/llama.block_count"), 2u);
  ASSERT_NE(checkpoint.typed_metadata.find("a/m.gguf/tokenizer.ggml.tokens"), nullptr);
  EXPECT_EQ(checkpoint.typed_metadata.find("a/m.gguf/tokenizer.ggml.tokens")->count, 3u);
  ASSERT_TRUE(checkpoint.unknown_ggml.contains("a/m.gguf/odd"));
  EXPECT_EQ(checkpoint.unknown_ggml.at("a/m.gguf/odd").id, 200u);
}

TEST(Archive, GivesAMemberAsItWasWhenItIsTheRoot) {
  const std::string gguf = small_gguf();
  const Checkpoint alone = test::open_text(gguf);
  OpenOptions options;
  options.root = "a/m.gguf";
  const Checkpoint taken =
      test::open_text(ZipFile().stored("a/m.gguf", gguf).stored("b.pt", inner_zip()).text(), options);
  EXPECT_EQ(taken.typed_metadata, alone.typed_metadata);
  EXPECT_EQ(taken.unknown_ggml.size(), alone.unknown_ggml.size());
  EXPECT_TRUE(taken.unknown_ggml.contains("odd"));
  EXPECT_EQ(taken.size(), alone.size());
  EXPECT_TRUE(taken.values.empty());
}

TEST(Archive, NamesItsMembersAsRoots) {
  const Checkpoint checkpoint =
      test::open_text(ZipFile().stored("b.pt", inner_zip()).stored("m.gguf", small_gguf()).text());
  std::vector<std::string> paths;
  for (const Root& root : checkpoint.roots) paths.push_back(root.path);
  EXPECT_EQ(paths, (std::vector<std::string>{"m.gguf", "b.pt"}));
}

// The metadata agree on an alias by the names that the file itself has.
TEST(Archive, KnowsTheAliasesOfItsMembers) {
  const std::string file = test::SafetensorsFile().metadata({{"head", "embed"}}).tensor("embed", "U8", {2}).text();
  const Checkpoint checkpoint = test::open_text(ZipFile().stored("m.safetensors", file).text());
  ASSERT_TRUE(checkpoint.contains("m.safetensors/head"));
  EXPECT_EQ(checkpoint.aliases.at("m.safetensors/head"), "m.safetensors/embed");
  EXPECT_FALSE(checkpoint.metadata.contains("m.safetensors/head"));
}

TEST(Archive, ReportsWhatItsMembersName) {
  const std::string hostile = py::pickle(py::call("os", "system", {py::text("id")}));
  const Checkpoint checkpoint = test::open_text(ZipFile().stored("a/b.pkl", hostile).text());
  ASSERT_EQ(checkpoint.dangerous.size(), 1u);
  EXPECT_EQ(checkpoint.dangerous[0].member, "a/b.pkl");
}

TEST(Archive, OpensArchivesInArchivesUpToALimit) {
  std::string file = inner_zip();
  for (std::uint64_t i = 0; i < Limits{}.max_archive_depth; ++i) file = ZipFile().stored("x", file).text();
  EXPECT_TRUE(test::open_text(file).contains("x/x/x/x/w"));
  file = ZipFile().stored("x", file).text();
  EXPECT_ERROR(test::open_text(file), Errc::limit, "lie inside each other too deep");
  OpenOptions options;
  options.limits.max_archive_depth += 1;
  EXPECT_TRUE(test::open_text(file, options).contains("x/x/x/x/x/w"));
}

TEST(Archive, SaysWhichMemberIsWrong) {
  const auto error = BALLAST_ERROR_OF(test::open_text(ZipFile().stored("a/b.pkl", "\x80\x02\xff").text()));
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), Errc::malformed);
  EXPECT_EQ(error->where(), "file!/a/b.pkl");
}

TEST(Archive, WithoutACheckpointIsRefused) {
  EXPECT_ERROR(test::open_text(ZipFile().stored("a.txt", "hello").text()), Errc::unsupported,
               "a zip archive without a checkpoint in it");
  EXPECT_ERROR(test::open_text(ZipFile().text()), Errc::unsupported, "a zip archive without a checkpoint in it");
}

TEST(Archive, NeverUsesANameAsAPath) {
  const Checkpoint checkpoint = test::open_text(ZipFile().stored("../../etc/model.pt", inner_zip()).text());
  EXPECT_TRUE(checkpoint.contains("../../etc/model.pt/w"));
}

TEST(Archive, TakesWeightsOnlyIntoItsMembers) {
  const std::string file = ZipFile().stored("a.pkl", py::pickle(py::call("pathlib", "PosixPath", {}))).text();
  EXPECT_NO_THROW(test::open_text(file));
  EXPECT_ERROR(test::open_text(file, {.safety = Safety::strict}), Errc::unsafe, "pathlib.PosixPath");
}

}  // namespace
}  // namespace ballast
