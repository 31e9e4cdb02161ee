// Names that share a tensor by agreement in the metadata, there and back.
#include <gtest/gtest.h>

#include <ballast/open.hpp>
#include <ballast/save.hpp>
#include <ballast/transform.hpp>

#include "builders/safetensors_file.hpp"
#include "checkpoint/agreements/aliases.hpp"
#include "support/expect_error.hpp"
#include "support/tensor_values.hpp"

namespace ballast {
namespace {

using test::SafetensorsFile;
using test::TempDir;
using test::text_of;
using Aliases = std::map<std::string, std::string, std::less<>>;

Checkpoint tied() {
  return SafetensorsFile()
      .metadata({{"head", "emb"}, {"format", "pt"}})
      .tensor("emb", "F32", {4})
      .tensor("other", "F32", {4})
      .open();
}

Checkpoint saved(const Checkpoint& checkpoint, SaveOptions options = {}) {
  const TempDir folder;
  options.durable = false;
  save(checkpoint, folder / "model.safetensors", options);
  Checkpoint again = open(folder.path());
  for (const auto& [name, tensor] : again) static_cast<void>(text_of(tensor));
  return again;
}

TEST(Aliases, GiveRemovedNamesBack) {
  const Checkpoint checkpoint = tied();
  EXPECT_EQ(checkpoint.aliases, (Aliases{{"head", "emb"}}));
  ASSERT_EQ(checkpoint.size(), 3u);
  EXPECT_EQ(checkpoint.tensors[2].name, "head");  // after the others
  EXPECT_EQ(checkpoint.at("head").storage(), checkpoint.at("emb").storage());
  EXPECT_EQ(checkpoint.at("head").offset(), checkpoint.at("emb").offset());
}

// Metadata are free text: an entry is an alias only if it can be nothing else.
TEST(Aliases, CountOnlyIfTheKeyIsNotATensorAndTheValueIsATensor) {
  EXPECT_TRUE(SafetensorsFile().metadata({{"format", "pt"}}).tensor("pt", "U8", {1}).open().aliases.empty());
  EXPECT_TRUE(SafetensorsFile().metadata({{"a", "nothing"}}).tensor("w", "U8", {1}).open().aliases.empty());
  EXPECT_TRUE(
      SafetensorsFile().metadata({{"w", "v"}}).tensor("w", "U8", {1}).tensor("v", "U8", {1}).open().aliases.empty());
  EXPECT_TRUE(SafetensorsFile().metadata({{"w", "w"}}).tensor("w", "U8", {1}).open().aliases.empty());
  EXPECT_TRUE(SafetensorsFile().metadata({{"a", "b"}, {"b", "a"}}).tensor("w", "U8", {1}).open().aliases.empty());
}

TEST(Aliases, AreKeptAsTensorsIfTheyAreOther) {
  const StoragePtr bytes = memory_storage(std::vector<std::byte>(64));
  const Tensor kept(DType::f32, {2, 2}, bytes);
  const auto names_with = [&](const std::string& name, const Tensor& tensor) {
    Checkpoint checkpoint;
    checkpoint.tensors.insert("kept", kept);
    checkpoint.tensors.insert(name, tensor);
    checkpoint.aliases.emplace(name, "kept");
    return fold_aliases(std::move(checkpoint)).size();
  };
  EXPECT_EQ(names_with("same", kept), 1u);
  EXPECT_EQ(names_with("same", Tensor(DType::f32, {2, 2}, Strides{2, 1}, bytes)), 1u);
  EXPECT_EQ(names_with("format", kept), 2u) << "which means something else there";
  for (const Tensor& other :
       {Tensor(DType::f32, {2, 2}, memory_storage(std::vector<std::byte>(64))), Tensor(DType::f32, {2, 2}, bytes, 4),
        Tensor(DType::f32, {2, 2}, bytes, 1), Tensor(DType::i32, {2, 2}, bytes), Tensor(DType::f32, {4}, bytes),
        Tensor(DType::f32, {2, 2}, Strides{1, 2}, bytes), Tensor(DType::f32, {2, 2}, Strides{4, 1}, bytes)})
    EXPECT_EQ(names_with("other", other), 2u);
}

TEST(Aliases, AreKeptAsTensorsIfTheirStridesAreOther) {
  const StoragePtr bytes = memory_storage(std::vector<std::byte>(64));
  for (const Tensor& other : {Tensor(DType::f32, {2, 2}, Strides{1, 4}, bytes), Tensor(DType::f32, {2, 2}, bytes)}) {
    Checkpoint checkpoint;
    checkpoint.tensors.insert("kept", Tensor(DType::f32, {2, 2}, Strides{1, 2}, bytes));
    checkpoint.tensors.insert("other", other);
    checkpoint.aliases.emplace("other", "kept");
    EXPECT_EQ(fold_aliases(std::move(checkpoint)).size(), 2u);
  }
}

TEST(Aliases, AreNeverOfAliases) {
  EXPECT_EQ(SafetensorsFile().metadata({{"b", "w"}, {"c", "b"}}).tensor("w", "U8", {1}).open().aliases,
            (Aliases{{"b", "w"}}));
  EXPECT_EQ(SafetensorsFile().metadata({{"a", "b"}, {"b", "w"}}).tensor("w", "U8", {1}).open().aliases,
            (Aliases{{"b", "w"}}));
}

TEST(Aliases, AreFoldedAgainWhenSaved) {
  const Checkpoint checkpoint = tied();
  const TempDir folder;
  save(checkpoint, folder / "x.safetensors", {.durable = false});
  const auto raw = SafetensorsFile()
                       .metadata({{"format", "pt"}, {"head", "emb"}})
                       .tensor("emb", "F32", {4})
                       .tensor("other", "F32", {4});
  EXPECT_EQ(folder.read("x.safetensors").substr(8, raw.header().size()), raw.header());
  EXPECT_EQ(saved(checkpoint).aliases, checkpoint.aliases);
}

TEST(Aliases, FoldAndUnfoldAreInverse) {
  const Checkpoint checkpoint = tied();
  const Checkpoint folded = fold_aliases(checkpoint);
  EXPECT_EQ(folded.size(), 2u);
  EXPECT_TRUE(folded.aliases.empty());
  EXPECT_EQ(folded.metadata, checkpoint.metadata);
  const Checkpoint again = unfold_aliases(folded);
  EXPECT_EQ(again.aliases, checkpoint.aliases);
  EXPECT_EQ(again.size(), checkpoint.size());
}

TEST(Aliases, WhoseTensorIsLeftOutBecomeTensors) {
  const Checkpoint again = saved(select(tied(), {.include = {}, .exclude = {"emb"}}));
  EXPECT_EQ(again.size(), 2u);
  EXPECT_TRUE(again.aliases.empty());
  EXPECT_FALSE(again.metadata.contains("head"));
  EXPECT_EQ(text_of(again.at("head")), text_of(tied().at("emb")));
}

TEST(Aliases, ThatAreLeftOutLeaveNoTrace) {
  const Checkpoint again = saved(select(tied(), {.include = {}, .exclude = {"head"}}));
  EXPECT_EQ(again.size(), 2u);
  EXPECT_EQ(again.metadata, (Metadata{{"format", "pt"}}));
}

TEST(Aliases, AreRenamedWithTheirTensors) {
  const Checkpoint again = saved(rename(tied(), {{"^", "model."}}));
  EXPECT_EQ(again.aliases, (Aliases{{"model.head", "model.emb"}}));
  EXPECT_EQ(again.size(), 3u);
}

TEST(Aliases, ThatAreLeftOutDoNotTakeTheirTensorWithThem) {
  const std::vector<RenameRule> both_alike = {{"^(emb|head)$", "wte"}};
  for (const char* left_out : {"emb", "head"}) {
    const Checkpoint again = saved(rename(select(tied(), {.include = {}, .exclude = {left_out}}), both_alike));
    EXPECT_EQ(test::names_of(again), (std::vector<std::string>{"other", "wte"})) << left_out;
    EXPECT_EQ(text_of(again.at("wte")), text_of(tied().at("emb")));
    EXPECT_EQ(again.metadata, (Metadata{{"format", "pt"}}));
  }
}

TEST(Aliases, WhoseNameMeansSomethingElseInTheMetadataBecomeTensors) {
  Checkpoint checkpoint = rename(tied(), {{"^head$", "format"}});
  EXPECT_EQ(saved(checkpoint).size(), 3u);
  EXPECT_EQ(saved(checkpoint).metadata, (Metadata{{"format", "pt"}}));
  checkpoint = tied();
  checkpoint.metadata["head"] = "said by the user";
  EXPECT_EQ(saved(checkpoint).size(), 3u);
  EXPECT_EQ(saved(checkpoint).metadata.at("head"), "said by the user");
}

TEST(Aliases, SurviveACast) {
  const Checkpoint again = saved(cast(tied(), DType::bf16));
  EXPECT_EQ(again.aliases, (Aliases{{"head", "emb"}}));
  EXPECT_EQ(again.at("head").dtype(), DType::bf16);
}

TEST(Aliases, SurviveSharding) {
  const Checkpoint again = saved(tied(), {.max_shard_bytes = 16});
  EXPECT_EQ(again.shards, 2u);
  EXPECT_EQ(again.aliases, (Aliases{{"head", "emb"}}));
  EXPECT_EQ(text_of(again.at("head")), text_of(tied().at("emb")));
}

TEST(Aliases, WhoseTensorWasReplacedBecomeTensors) {
  Checkpoint checkpoint = tied();
  checkpoint.tensors.replace("head", Tensor::from_values<float>(DType::f32, {1}, std::vector<float>{7}));
  const Checkpoint again = saved(checkpoint);
  EXPECT_TRUE(again.aliases.empty());
  EXPECT_EQ(test::values_of<float>(again.at("head")), std::vector<float>{7});
}

}  // namespace
}  // namespace ballast
