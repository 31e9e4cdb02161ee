// What verify finds, and that it finds nothing in a good checkpoint.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>

#include <ballast/save.hpp>
#include <ballast/verify.hpp>

#include "builders/safetensors_file.hpp"
#include "support/expect_error.hpp"

namespace ballast {
namespace {

namespace fs = std::filesystem;
using test::SafetensorsFile;
using test::TempDir;

std::vector<std::string> findings(const std::string& target, const VerifyOptions& options = {}) {
  std::vector<std::string> found;
  for (const Finding& finding : verify(target, options).findings)
    found.push_back(fs::path(finding.where).filename().string() + ": " + finding.what);
  return found;
}

using Found = std::vector<std::string>;

// Two shards of two tensors each, and the index that is given.
struct TwoShards {
  explicit TwoShards(
      const std::string& index = R"({"metadata":{"total_size":8},"weight_map":{"a":"1","b":"1","c":"2","d":"2"}})") {
    SafetensorsFile().tensor("a", "U8", {2}).tensor("b", "U8", {2}).write(folder, "1");
    SafetensorsFile().tensor("c", "U8", {2}).tensor("d", "U8", {2}).write(folder, "2");
    folder.write("model.safetensors.index.json", index);
  }
  TempDir folder;
};

TEST(Verify, FindsNothingInAGoodCheckpoint) {
  const TwoShards set;
  const VerifyReport report = verify(set.folder.path());
  EXPECT_TRUE(report.ok());
  EXPECT_EQ(report.tensors, 4u);
  EXPECT_EQ(report.bytes_read, 8u);
  EXPECT_TRUE(verify(set.folder / "1").ok());
  EXPECT_TRUE(verify(set.folder / "model.safetensors.index.json").ok());
}

TEST(Verify, ReadsNoDataWhenToldSo) {
  const TwoShards set;
  VerifyOptions options;
  options.read_data = false;
  EXPECT_EQ(verify(set.folder.path(), options).bytes_read, 0u);
}

TEST(Verify, FindsAWrongTotal) {
  const TwoShards set(R"({"metadata":{"total_size":9},"weight_map":{"a":"1","b":"1","c":"2","d":"2"}})");
  EXPECT_EQ(findings(set.folder.path()),
            Found{"model.safetensors.index.json: total_size is 9, but the shards have 8 bytes of tensors"});
}

TEST(Verify, TakesATotalThatIsAFloat) {
  EXPECT_TRUE(
      verify(
          TwoShards(R"({"metadata":{"total_size":8.0},"weight_map":{"a":"1","b":"1","c":"2","d":"2"}})").folder.path())
          .ok());
  EXPECT_TRUE(verify(TwoShards(R"({"weight_map":{"a":"1","b":"1","c":"2","d":"2"}})").folder.path()).ok());
}

TEST(Verify, FindsATensorInTheWrongShard) {
  const TwoShards set(R"({"weight_map":{"a":"1","b":"2","c":"2","d":"2"}})");
  EXPECT_EQ(findings(set.folder.path()), (Found{"model.safetensors.index.json: tensor \"b\" is not in \"2\"",
                                                "model.safetensors.index.json: does not list tensor \"b\" of \"1\""}));
}

TEST(Verify, FindsTensorsThatTheIndexLeavesOut) {
  const TwoShards set(R"({"weight_map":{"a":"1","c":"2","d":"2"}})");
  EXPECT_EQ(findings(set.folder.path()), Found{"model.safetensors.index.json: does not list tensor \"b\" of \"1\""});
}

TEST(Verify, FindsTensorsThatAreNotThere) {
  const TwoShards set(R"({"weight_map":{"a":"1","b":"1","c":"2","d":"2","e":"2"}})");
  EXPECT_EQ(findings(set.folder.path()), Found{"model.safetensors.index.json: tensor \"e\" is not in \"2\""});
}

TEST(Verify, FindsAShardThatIsMissing) {
  const TwoShards set;
  fs::remove(set.folder / "2");
  const auto found = findings(set.folder.path());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].starts_with("2: cannot be opened")) << found[0];
}

TEST(Verify, FindsEveryShardThatIsCutShort) {
  const TwoShards set;
  for (const char* shard : {"1", "2"}) fs::resize_file(set.folder / shard, fs::file_size(set.folder / shard) - 1);
  EXPECT_EQ(findings(set.folder.path()), (Found{"1: tensor \"b\" ends at byte 4 but the data has 3 bytes (byte 61)",
                                                "2: tensor \"d\" ends at byte 4 but the data has 3 bytes (byte 61)"}));
}

TEST(Verify, FindsAnIndexThatLeadsOutside) {
  const TwoShards set(R"({"weight_map":{"a":"../1"}})");
  const auto found = findings(set.folder.path());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NE(found[0].find("not in its own folder"), std::string::npos);
}

TEST(Verify, FindsAnIndexThatIsNotJson) {
  const TwoShards set("{");
  EXPECT_EQ(findings(set.folder.path()), Found{"model.safetensors.index.json: the text ends early (byte 1)"});
}

TEST(Verify, FindsOneNameInTwoShardsWithoutAnIndex) {
  const TempDir folder;
  SafetensorsFile().tensor("w", "U8", {1}).write(folder, "m-00001-of-00002.safetensors");
  SafetensorsFile().tensor("w", "U8", {1}).write(folder, "m-00002-of-00002.safetensors");
  EXPECT_EQ(findings(folder.path()),
            Found{": tensor \"w\" is in \"m-00001-of-00002.safetensors\" and in \"m-00002-of-00002.safetensors\""});
}

TEST(Verify, FindsWhatIsWrongWithOneFile) {
  const TempDir folder;
  EXPECT_EQ(findings(SafetensorsFile("{}").data(3).write(folder, "tail")),
            Found{"tail: 3 bytes follow the last tensor (byte 10)"});
  EXPECT_EQ(findings(SafetensorsFile(" {}").write(folder, "space")), Found{"space: the header begins with spaces"});
  EXPECT_EQ(findings(folder.write("empty", "")), Found{"empty: the file is empty"});
  EXPECT_EQ(findings(folder.write("zip", "PK\x03\x04")), Found{"zip: a zip archive without its end record (byte 4)"});
}

TEST(Verify, ThrowsOnlyForATargetThatIsNotThere) {
  const TempDir folder;
  EXPECT_ERROR(verify(folder / "nothing"), Errc::not_found, "nothing");
}

// Hugging Face's cache keeps files like this: a link is not a defect, and neither is another file beside the model.
TEST(Verify, FindsNothingInAFolderOfLinks) {
  const TempDir blobs, folder;
  fs::create_symlink(SafetensorsFile().tensor("w", "U8", {1}).write(blobs, "blob"), folder / "model.safetensors");
  EXPECT_EQ(findings(folder.path()), Found{});
  SafetensorsFile().tensor("a", "U8", {1}).write(folder, "adapter.safetensors");
  EXPECT_EQ(findings(folder.path()), Found{});
}

TEST(Verify, LooksIntoTheHeadersOfShards) {
  const TempDir folder;
  SafetensorsFile(R"( {"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})").data(1).write(folder, "a.safetensors");
  folder.write("model.safetensors.index.json", R"({"weight_map":{"w":"a.safetensors"}})");
  EXPECT_EQ(findings(folder.path()), Found{"a.safetensors: the header begins with spaces"});
}

TEST(Verify, CountsTiedTensorsOnce) {
  const TempDir folder;
  SafetensorsFile().metadata({{"head", "emb"}}).tensor("emb", "U8", {4}).write(folder, "1");
  folder.write("model.safetensors.index.json", R"({"metadata":{"total_size":4},"weight_map":{"emb":"1"}})");
  EXPECT_EQ(findings(folder.path()), Found{});
}

TEST(Verify, PassesWhatWeWrote) {
  const TempDir folder;
  SafetensorsFile file;
  file.metadata({{"t1.tied", "t1"}});
  for (int i = 0; i < 20; ++i) file.tensor("t" + std::to_string(i), "F32", {static_cast<std::uint64_t>(10 * i)});
  save(file.open(), folder / "model.safetensors", {.max_shard_bytes = 1500, .durable = false});
  EXPECT_EQ(findings(folder.path()), Found{});
}

// A torch file holds bytes that tensors share once, and its total size counts them once.
TEST(Verify, PassesTiedTensorsOfTorchShardsThatWeWrote) {
  const TempDir folder;
  SafetensorsFile file;
  file.metadata({{"t1.tied", "t1"}});
  for (int i = 1; i < 20; ++i) file.tensor("t" + std::to_string(i), "F32", {static_cast<std::uint64_t>(10 * i)});
  save(file.open(), folder / "model.pt", {.max_shard_bytes = 1500, .durable = false});
  EXPECT_EQ(findings(folder / "model.pt.index.json"), Found{});
}

TEST(Verify, FindsThatShardsAreMissingIfThereIsNoIndex) {
  const TempDir folder;
  SafetensorsFile().tensor("a", "U8", {2}).write(folder, "model-00001-of-00002.safetensors");
  const Found found = findings(folder.path());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].ends_with("the folder has 1 of the 2 shards of \"model\"")) << found[0];
}

// There are as many findings as lies, and a hostile index has many: they must not be compared with one another.
TEST(Verify, TakesTimeThatGrowsLikeTheLies) {
  const auto seconds = [](int lies) {
    const TempDir folder;
    std::string map = R"("a":"1")";
    for (int i = 0; i < lies; ++i) map += ",\"lie" + std::to_string(i) + "\":\"1\"";
    SafetensorsFile().tensor("a", "U8", {2}).write(folder, "1");
    folder.write("model.safetensors.index.json", "{\"weight_map\":{" + map + "}}");
    double best = 1e9;
    for (int round = 0; round < 3; ++round) {
      const auto start = std::chrono::steady_clock::now();
      EXPECT_EQ(verify(folder.path()).findings.size(), static_cast<std::size_t>(lies));
      best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    return best;
  };
  double growth = 1e9;
  for (int tries = 0; tries < 4 && growth > 60; ++tries) growth = std::min(growth, seconds(32'000) / seconds(2'000));
  EXPECT_LE(growth, 60);  // for sixteen times the lies; quadratic would be 256
}

}  // namespace
}  // namespace ballast
