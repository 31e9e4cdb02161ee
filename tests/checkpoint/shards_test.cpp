// Many files as one checkpoint, and the ways in which an index and its shards disagree.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fmt/format.h>
#include <filesystem>

#include <ballast/open.hpp>
#include <ballast/save.hpp>

#include "builders/safetensors_file.hpp"
#include "support/expect_error.hpp"
#include "support/tensor_values.hpp"

namespace ballast {
namespace {

namespace fs = std::filesystem;
using test::SafetensorsFile;
using test::TempDir;
using test::text_of;

// A file whose tensors, two bytes each, all hold its own letter.
void put(const TempDir& folder, const std::string& letter, const std::vector<std::string>& tensors) {
  SafetensorsFile file;
  std::uint64_t at = 0;
  for (const std::string& tensor : tensors) {
    file.tensor(tensor, "U8", {2}, at, at + 2);
    at += 2;
  }
  file.data(std::string(at, letter[0])).write(folder, letter + ".safetensors");
}

// {"w": "a"} says that a.safetensors holds w.
std::string index(const TempDir& folder, const std::vector<std::pair<std::string, std::string>>& places,
                  const std::string& metadata = "{}") {
  std::string map;
  for (const auto& [tensor, letter] : places)
    map += (map.empty() ? "\"" : ",\"") + tensor + "\":\"" + letter + ".safetensors\"";
  return folder.write("model.safetensors.index.json", "{\"metadata\":" + metadata + ",\"weight_map\":{" + map + "}}");
}

TEST(Shards, AreOneCheckpoint) {
  const TempDir folder;
  put(folder, "b", {"x", "y"});
  put(folder, "a", {"z"});
  const std::string path = index(folder, {{"x", "b"}, {"y", "b"}, {"z", "a"}}, R"({"total_size":6})");
  for (const std::string& target : {folder.path(), path}) {
    const Checkpoint checkpoint = open(target);
    EXPECT_EQ(checkpoint.target, target);
    EXPECT_EQ(checkpoint.size(), 3u);
    EXPECT_EQ(checkpoint.shards, 2u);
    EXPECT_EQ(checkpoint.files.size(), 3u);  // two shards and the index
    EXPECT_TRUE(checkpoint.notes.empty());
    EXPECT_EQ(text_of(checkpoint.at("z")), "aa");
    EXPECT_EQ(text_of(checkpoint.at("y")), "bb");
  }
}

TEST(Shards, OpenAloneByTheirOwnName) {
  const TempDir folder;
  put(folder, "a", {"x"});
  put(folder, "b", {"y"});
  index(folder, {{"x", "a"}, {"y", "b"}});
  EXPECT_EQ(open(folder / "a.safetensors").size(), 1u);
}

TEST(Shards, ThatAreMissingAreNamed) {
  const TempDir folder;
  put(folder, "a", {"x"});
  index(folder, {{"x", "a"}, {"y", "b"}});
  EXPECT_ERROR(open(folder.path()), Errc::not_found, "b.safetensors");
}

TEST(Shards, MayNotBePipesOrFolders) {
  const TempDir folder;
  ASSERT_EQ(mkfifo((folder / "a.safetensors").c_str(), 0600), 0);
  index(folder, {{"x", "a"}});
  EXPECT_ERROR(open(folder.path()), Errc::invalid_argument, "a.safetensors");
  fs::remove(folder / "a.safetensors");
  fs::create_directory(folder / "a.safetensors");
  EXPECT_ERROR(open(folder.path()), Errc::invalid_argument, "a.safetensors");
}

TEST(Shards, MayNotBeTheIndexItself) {
  const TempDir folder;
  const std::string path = folder.write("x.json", R"({"weight_map":{"w":"x.json"}})");
  EXPECT_ERROR(open(path), Errc::unsupported, "this is JSON");
}

TEST(Shards, OutsideTheFolderAreNeverOpened) {
  const TempDir folder;
  fs::create_directory(folder / "inner");
  put(folder, "a", {"x"});
  const std::string path =
      folder.write("inner/model.safetensors.index.json", R"({"weight_map":{"x":"../a.safetensors"}})");
  EXPECT_ERROR(open(path), Errc::unsafe, "model.safetensors.index.json: the index names the file \"../a.safetensors\"");
}

TEST(Shards, MayBeLinksToAnotherDiskWithANote) {
  const TempDir elsewhere, folder;
  put(elsewhere, "a", {"x"});
  put(elsewhere, "b", {"y"});
  fs::create_symlink(elsewhere / "a.safetensors", folder / "a.safetensors");
  fs::create_symlink(elsewhere / "b.safetensors", folder / "b.safetensors");
  index(folder, {{"x", "a"}, {"y", "b"}});
  const Checkpoint checkpoint = open(folder.path());
  EXPECT_EQ(checkpoint.size(), 2u);
  ASSERT_EQ(checkpoint.notes.size(), 1u);
  EXPECT_EQ(checkpoint.notes[0].text, "2 links lead out of the folder");
}

TEST(Shards, ThatLinkInACircleAreRefused) {
  const TempDir folder;
  fs::create_symlink("b.safetensors", folder / "a.safetensors");
  fs::create_symlink("a.safetensors", folder / "b.safetensors");
  index(folder, {{"x", "a"}});
  EXPECT_ERROR(open(folder.path()), Errc::io, "a.safetensors");
}

TEST(Shards, CutShortAreNamed) {
  const TempDir folder;
  put(folder, "a", {"x"});
  put(folder, "b", {"y"});
  fs::resize_file(folder / "b.safetensors", fs::file_size(folder / "b.safetensors") - 1);
  index(folder, {{"x", "a"}, {"y", "b"}});
  EXPECT_ERROR(open(folder.path()), Errc::malformed,
               "b.safetensors: tensor \"y\" ends at byte 2 but the data has 1 bytes");
  EXPECT_HINT(open(folder.path()), "cut short");
}

// A name in two shards.

TEST(ShardsWithATensorTwice, FollowTheIndexWithANote) {
  for (const char* chosen : {"a", "b"}) {
    const TempDir folder;
    put(folder, "a", {"w", "x"});
    put(folder, "b", {"w", "y"});
    index(folder, {{"x", "a"}, {"y", "b"}, {"w", chosen}});
    const Checkpoint checkpoint = open(folder.path());
    EXPECT_EQ(checkpoint.size(), 3u);
    EXPECT_EQ(text_of(checkpoint.at("w")), std::string(2, *chosen));
    ASSERT_EQ(checkpoint.notes.size(), 1u);
    EXPECT_NE(checkpoint.notes[0].text.find("tensor \"w\" is in \"a.safetensors\" and in \"b.safetensors\""),
              std::string::npos);
  }
}

TEST(ShardsWithATensorTwice, FollowTheIndexAmongThree) {
  for (const char* chosen : {"a", "b", "c"}) {
    const TempDir folder;
    for (const char* letter : {"a", "b", "c"}) put(folder, letter, {"w", letter});
    index(folder, {{"a", "a"}, {"b", "b"}, {"c", "c"}, {"w", chosen}});
    EXPECT_EQ(text_of(open(folder.path()).at("w")), std::string(2, *chosen));
  }
}

TEST(ShardsWithATensorTwice, AreRefusedWithoutAnIndex) {
  const TempDir folder;
  SafetensorsFile().tensor("w", "U8", {1}).write(folder, "m-00001-of-00002.safetensors");
  SafetensorsFile().tensor("w", "U8", {1}).write(folder, "m-00002-of-00002.safetensors");
  EXPECT_ERROR(open(folder.path()), Errc::malformed,
               "tensor \"w\" is in \"m-00001-of-00002.safetensors\" and in \"m-00002-of-00002.safetensors\"");
  EXPECT_HINT(open(folder.path()), "by its name");
}

TEST(ShardsWithATensorTwice, AreRefusedIfTheIndexIsSilent) {
  const TempDir folder;
  put(folder, "a", {"w", "x"});
  put(folder, "b", {"w", "y"});
  index(folder, {{"x", "a"}, {"y", "b"}});
  EXPECT_ERROR(open(folder.path()), Errc::malformed, "the index does not say which one counts");
}

TEST(ShardsWithATensorTwice, AreRefusedIfTheIndexNamesAThirdShard) {
  const TempDir folder;
  put(folder, "a", {"w", "x"});
  put(folder, "b", {"w", "y"});
  put(folder, "c", {"z"});
  index(folder, {{"x", "a"}, {"y", "b"}, {"z", "c"}, {"w", "c"}});
  EXPECT_ERROR(open(folder.path()), Errc::malformed, "\"w\"");
}

TEST(ShardsWithATensorTwice, AreRefusedIfTheIndexNamesItTwice) {
  for (const char* second : {"a", "b"}) {
    const TempDir folder;
    put(folder, "a", {"w", "x"});
    put(folder, "b", {"y"});
    index(folder, {{"w", "a"}, {"x", "a"}, {"y", "b"}, {"w", second}});
    EXPECT_ERROR(open(folder.path()), Errc::malformed, "\"weight_map\" has tensor \"w\" twice");
    // As many names as tensors, but not the same.
    index(folder, {{"w", "a"}, {"y", "b"}, {"w", second}});
    EXPECT_ERROR(open(folder.path()), Errc::malformed, "\"weight_map\" has tensor \"w\" twice");
  }
}

// An index that is out of date.

TEST(StaleIndex, NamingTensorsThatNoShardHasIsNoted) {
  const TempDir folder;
  put(folder, "a", {"x"});
  index(folder, {{"x", "a"}, {"gone.1", "a"}, {"gone.2", "a"}});
  const Checkpoint checkpoint = open(folder.path());
  EXPECT_EQ(checkpoint.size(), 1u);
  ASSERT_EQ(checkpoint.notes.size(), 1u);
  EXPECT_EQ(checkpoint.notes[0].text, "names 2 tensors that no shard has, such as \"gone.1\"");
}

TEST(StaleIndex, ThatDoesNotListATensorIsNoted) {
  const TempDir folder;
  put(folder, "a", {"x", "new"});
  index(folder, {{"x", "a"}});
  const Checkpoint checkpoint = open(folder.path());
  EXPECT_EQ(checkpoint.size(), 2u);
  ASSERT_EQ(checkpoint.notes.size(), 1u);
  EXPECT_EQ(checkpoint.notes[0].text, "does not list 1 tensors of its shards, such as \"new\"");
}

TEST(Shards, KeepTheMetadataOfTheFirstShardThatHasSome) {
  const TempDir folder;
  SafetensorsFile().metadata({{"format", "pt"}, {"k", "first"}}).tensor("x", "U8", {1}).write(folder, "a.safetensors");
  SafetensorsFile()
      .metadata({{"format", "pt"}, {"k", "second"}, {"l", "only"}})
      .tensor("y", "U8", {1})
      .write(folder, "b.safetensors");
  index(folder, {{"x", "a"}, {"y", "b"}}, R"({"from":"index","total_size":2})");
  const Checkpoint checkpoint = open(folder.path());
  EXPECT_EQ(checkpoint.metadata, (Metadata{{"format", "pt"}, {"k", "first"}, {"l", "only"}, {"from", "index"}}));
  ASSERT_EQ(checkpoint.notes.size(), 1u);
  EXPECT_EQ(checkpoint.notes[0].text, "metadata \"k\" is not what another file says; kept the first");
}

TEST(Shards, WithoutAnyTensorAreAnEmptyCheckpoint) {
  const TempDir folder;
  EXPECT_EQ(open(folder.write("x.json", R"({"weight_map":{}})")).size(), 0u);
}

TEST(Shards, CountTowardsTheLimitOfTensorsTogether) {
  const TempDir folder;
  put(folder, "a", {"x", "y"});
  put(folder, "b", {"z"});
  index(folder, {{"x", "a"}, {"y", "a"}, {"z", "b"}});
  OpenOptions options;
  options.limits.max_tensors = 2;
  EXPECT_ERROR(open(folder.path(), options), Errc::limit, "more than 2 tensors");
  options.limits.max_tensors = 3;
  EXPECT_EQ(open(folder.path(), options).size(), 3u);
}

// A large mixture of experts: 92 000 tensors in 163 files.
TEST(Shards, OfALargeModelOpen) {
  constexpr int kShards = 163, kTensors = 92'000;
  const TempDir folder;
  std::string map;
  std::vector<SafetensorsFile> files(kShards);
  for (int i = 0; i < kTensors; ++i) {
    const std::string name = fmt::format("model.layers.{}.mlp.experts.{}.up_proj.weight", i / 1000, i % 1000);
    const int shard = i * kShards / kTensors;
    files[static_cast<std::size_t>(shard)].tensor(name, "F8_E4M3", {1});
    map +=
        fmt::format("{}\"{}\":\"model-{:05}-of-{:05}.safetensors\"", map.empty() ? "" : ",", name, shard + 1, kShards);
  }
  for (int i = 0; i < kShards; ++i)
    files[static_cast<std::size_t>(i)].write(folder, fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, kShards));

  const Checkpoint bare = open(folder.path());
  EXPECT_EQ(bare.size(), static_cast<std::size_t>(kTensors));
  folder.write("model.safetensors.index.json",
               fmt::format("{{\"metadata\":{{\"total_size\":{}}},\"weight_map\":{{{}}}}}", kTensors, map));
  const Checkpoint checkpoint = open(folder.path());
  EXPECT_EQ(checkpoint.size(), static_cast<std::size_t>(kTensors));
  EXPECT_EQ(checkpoint.shards, static_cast<std::uint64_t>(kShards));
  EXPECT_TRUE(checkpoint.notes.empty());
  EXPECT_EQ(checkpoint.tensors[0].name, "model.layers.0.mlp.experts.0.up_proj.weight");
  EXPECT_EQ(checkpoint.tensors[kTensors - 1].name, "model.layers.91.mlp.experts.999.up_proj.weight");
}

TEST(Shards, WrittenByUsReadAsOne) {
  const TempDir folder;
  SafetensorsFile file;
  for (int i = 0; i < 20; ++i) file.tensor("t" + std::to_string(i), "F32", {static_cast<std::uint64_t>(10 * i)});
  const Checkpoint whole = file.open();
  save(whole, folder / "model.safetensors", {.max_shard_bytes = 1500, .durable = false});
  EXPECT_GT(folder.names().size(), 4u);
  const Checkpoint again = open(folder.path());
  EXPECT_TRUE(again.notes.empty());
  ASSERT_EQ(again.size(), whole.size());
  for (const auto& [name, tensor] : whole) EXPECT_EQ(text_of(again.at(name)), text_of(tensor)) << name;
}

}  // namespace
}  // namespace ballast
