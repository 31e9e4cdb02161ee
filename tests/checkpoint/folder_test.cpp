// Opening a folder: which of its files are opened.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include <ballast/open.hpp>

#include "builders/safetensors_file.hpp"
#include "checkpoint/recognize/folder.hpp"
#include "support/expect_error.hpp"

namespace ballast {
namespace {

namespace fs = std::filesystem;
using test::SafetensorsFile;
using test::TempDir;

void put_tensor(const TempDir& folder, const std::string& file, const std::string& tensor) {
  SafetensorsFile().tensor(tensor, "U8", {2}).write(folder, file);
}

std::vector<std::string> opened(const TempDir& folder) {
  std::vector<std::string> names;
  for (const auto& file : open(folder.path()).files) names.push_back(fs::path(file.path).filename());
  return names;
}

using Names = std::vector<std::string>;

TEST(Folder, PrefersAnIndex) {
  const TempDir folder;
  put_tensor(folder, "model.safetensors", "whole");
  put_tensor(folder, "part.safetensors", "a");
  folder.write("model.safetensors.index.json", R"({"weight_map":{"a":"part.safetensors"}})");
  EXPECT_EQ(opened(folder), (Names{"part.safetensors", "model.safetensors.index.json"}));
}

TEST(Folder, TakesTheUsualIndexOfSeveral) {
  const TempDir folder;
  put_tensor(folder, "a.safetensors", "a");
  folder.write("model.safetensors.index.json", R"({"weight_map":{"a":"a.safetensors"}})");
  folder.write("other.safetensors.index.json", R"({"weight_map":{"b":"b.safetensors"}})");
  EXPECT_EQ(open(folder.path()).size(), 1u);
}

TEST(Folder, AsksWhichOfSeveralUnusualIndexes) {
  const TempDir folder;
  folder.write("x.safetensors.index.json", "{}");
  folder.write("y.safetensors.index.json", "{}");
  EXPECT_ERROR(open(folder.path()), Errc::invalid_argument,
               "several indexes: \"x.safetensors.index.json\", \"y.safetensors.index.json\"");
  EXPECT_HINT(open(folder.path()), "by its name");
}

TEST(Folder, TakesTheModelAndNotesWhatIsBesideIt) {
  const TempDir folder;
  put_tensor(folder, "model.safetensors", "w");
  EXPECT_TRUE(open(folder.path()).notes.empty());
  put_tensor(folder, "adapter.safetensors", "a");
  const Checkpoint checkpoint = open(folder.path());
  EXPECT_EQ(checkpoint.size(), 1u);
  ASSERT_EQ(checkpoint.notes.size(), 1u);
  EXPECT_EQ(checkpoint.notes[0].text, "opened model.safetensors; 1 other safetensors files are beside it");
}

TEST(Folder, TakesACompleteSetOfShards) {
  const TempDir folder;
  put_tensor(folder, "model-00002-of-00002.safetensors", "b");
  put_tensor(folder, "model-00001-of-00002.safetensors", "a");
  folder.write("config.json", "{}");
  folder.write(".hidden.safetensors", "junk");
  EXPECT_EQ(opened(folder), (Names{"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"}));
  EXPECT_EQ(open(folder.path()).shards, 2u);
}

TEST(Folder, SaysHowManyShardsAreMissing) {
  const TempDir folder;
  put_tensor(folder, "model-00001-of-00003.safetensors", "a");
  put_tensor(folder, "model-00003-of-00003.safetensors", "c");
  EXPECT_ERROR(open(folder.path()), Errc::not_found, "the folder has 2 of the 3 shards of \"model\"");
  EXPECT_HINT(open(folder.path()), "fetch the missing ones");
}

TEST(Folder, NotesAFileThatTheIndexDoesNotList) {
  const TempDir folder;
  put_tensor(folder, "model-00001-of-00001.safetensors", "a");
  put_tensor(folder, "model.safetensors", "b");
  folder.write("model.safetensors.index.json", R"({"weight_map":{"a":"model-00001-of-00001.safetensors"}})");
  const Checkpoint checkpoint = open(folder.path());
  EXPECT_TRUE(checkpoint.contains("a") && checkpoint.size() == 1);
  ASSERT_EQ(checkpoint.notes.size(), 1u);
  EXPECT_EQ(checkpoint.notes[0].text, "opened model.safetensors.index.json; model.safetensors is beside it");
}

TEST(Folder, CountsEachShardOnce) {
  const TempDir folder;
  put_tensor(folder, "model-00001-of-00002.safetensors", "a");
  put_tensor(folder, "model-1-of-2.safetensors", "b");
  EXPECT_ERROR(open(folder.path()), Errc::not_found, "1 of the 2 shards");
  const TempDir past;
  put_tensor(past, "model-00001-of-00002.safetensors", "a");
  put_tensor(past, "model-00003-of-00002.safetensors", "c");
  EXPECT_ERROR(open(past.path()), Errc::not_found, "1 of the 2 shards");
}

TEST(Folder, AsksWhichOfTwoSetsOfShards) {
  const TempDir folder;
  put_tensor(folder, "a-00001-of-00001.safetensors", "a");
  put_tensor(folder, "b-00001-of-00001.safetensors", "b");
  EXPECT_ERROR(open(folder.path()), Errc::invalid_argument, "several sets of shards: \"a\", \"b\"");
}

TEST(Folder, TakesTheOnlyFile) {
  const TempDir folder;
  put_tensor(folder, "adapter_model.safetensors", "a");
  EXPECT_EQ(opened(folder), Names{"adapter_model.safetensors"});
}

// Two files that are not a set may be anything: a model and its adapter, the same model twice.
TEST(Folder, AsksWhichOfSeveralFiles) {
  const TempDir folder;
  put_tensor(folder, "a.safetensors", "a");
  put_tensor(folder, "b.safetensors", "b");
  EXPECT_ERROR(open(folder.path()), Errc::invalid_argument,
               "several safetensors files: \"a.safetensors\", \"b.safetensors\"");
  EXPECT_HINT(open(folder.path()), "by its name");
}

TEST(Folder, TakesTheShardsAndNotesWhatIsBesideThem) {
  const TempDir folder;
  put_tensor(folder, "model-00001-of-00001.safetensors", "a");
  put_tensor(folder, "adapter.safetensors", "b");
  const Checkpoint checkpoint = open(folder.path());
  EXPECT_EQ(checkpoint.size(), 1u);
  EXPECT_EQ(checkpoint.notes.size(), 1u);
}

TEST(Folder, AnswersForNamesThatAreAlmostThoseOfShards) {
  for (const char* name :
       {"-of-.safetensors", "x-of-2.safetensors", "1-of-2.safetensors", "-1-of-.safetensors", "a--1-of-2.safetensors",
        "a-1-of-99999999999999999999.safetensors", "a-1-of-1-of-1.safetensors", ".safetensors"}) {
    const TempDir folder;
    put_tensor(folder, name, "a");
    static_cast<void>(test::error_of([&] { open(folder.path()); }));  // any answer will do
  }
}

TEST(Folder, SaysIfItIsEmpty) {
  const TempDir folder;
  folder.write("training_args.bin", "x");
  folder.write("README.md", "x");
  EXPECT_ERROR(open(folder.path()), Errc::not_found,
               "the folder has no checkpoint that goes by one of the usual names");
}

// A clone without LFS is the most usual broken download.
TEST(Folder, SaysThatItsFilesAreLfsPointers) {
  const TempDir folder;
  folder.write("model.safetensors", "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n");
  EXPECT_ERROR(open(folder.path()), Errc::unsupported, "model.safetensors: this is a Git LFS pointer");
  EXPECT_HINT(open(folder.path()), "git lfs pull");
  const TempDir sharded;
  sharded.write("model.safetensors.index.json", R"({"weight_map":{"a":"a.safetensors"}})");
  sharded.write("a.safetensors", "<!DOCTYPE html>");
  EXPECT_ERROR(open(sharded.path()), Errc::unsupported, "a.safetensors: this is a web page");
}

TEST(Folder, WithAPipeInItDoesNotHang) {
  const TempDir folder;
  ASSERT_EQ(mkfifo((folder / "model.safetensors").c_str(), 0600), 0);
  EXPECT_ERROR(open(folder.path()), Errc::invalid_argument, "not a file");
}

TEST(Folder, FollowsLinksAndNotesThoseThatLeaveIt) {
  const TempDir blobs, folder;
  put_tensor(blobs, "0123abcd", "w");
  fs::create_symlink(blobs / "0123abcd", folder / "model.safetensors");
  const Checkpoint checkpoint = open(folder.path());
  EXPECT_EQ(checkpoint.size(), 1u);
  ASSERT_EQ(checkpoint.notes.size(), 1u);
  EXPECT_EQ(checkpoint.notes[0].text, "a link leads out of the folder");
}

TEST(Folder, SaysWhichOtherModelsAreBesideAFileWithANameOfItsOwn) {
  const TempDir folder;
  put_tensor(folder, "a.safetensors", "w");
  folder.write("a.bin", "the same in another format");
  EXPECT_TRUE(open(folder.path()).notes.empty());
  folder.write("optimizer.pt", "");
  folder.write("b.pt", "");
  folder.write("c.gguf", "");
  const Checkpoint checkpoint = open(folder.path());
  ASSERT_EQ(checkpoint.notes.size(), 1u);
  EXPECT_EQ(checkpoint.notes[0].text, "opened a.safetensors; \"b.pt\", \"c.gguf\" are beside it");
}

TEST(Folder, OfASnapshotInTheHubsCacheIsMadeOfLinksWithoutANote) {
  const TempDir cache;
  const std::filesystem::path model = cache / "models--org--tiny", snapshot = model / "snapshots" / "abc";
  std::filesystem::create_directories(model / "blobs");
  std::filesystem::create_directories(snapshot);
  put_tensor(cache, "0123abcd", "w");
  std::filesystem::rename(cache / "0123abcd", model / "blobs" / "0123abcd");
  std::filesystem::create_symlink("../../blobs/0123abcd", snapshot / "model.safetensors");
  EXPECT_TRUE(open(snapshot.string()).notes.empty());
}

TEST(Folder, DoesNotNoteLinksThatStayInIt) {
  const TempDir folder;
  put_tensor(folder, "blob", "w");
  fs::create_symlink("./blob", folder / "model.safetensors");
  EXPECT_TRUE(open(folder.path()).notes.empty());
  fs::remove(folder / "model.safetensors");
  fs::create_symlink(folder / "blob", folder / "model.safetensors");
  EXPECT_TRUE(open(folder.path()).notes.empty());
}

TEST(Folder, RefusesLinksThatGoRound) {
  const TempDir folder;
  fs::create_symlink("b.safetensors", folder / "model.safetensors");
  fs::create_symlink("model.safetensors", folder / "b.safetensors");
  EXPECT_ERROR(open(folder.path()), Errc::io, "model.safetensors");
}

}  // namespace
}  // namespace ballast
