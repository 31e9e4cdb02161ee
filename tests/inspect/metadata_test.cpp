// Editing metadata: in place if they fit, in a new file if not, and never a byte more than was asked for.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <filesystem>

#include <ballast/metadata.hpp>
#include <ballast/open.hpp>

#include "builders/safetensors_file.hpp"
#include "support/expect_error.hpp"
#include "support/tensor_values.hpp"

namespace ballast {
namespace {

namespace fs = std::filesystem;
using test::SafetensorsFile;
using test::TempDir;

constexpr const char* kFile = "x.safetensors";

MetadataEditReport edit(const TempDir& folder, const MetadataEdit& change) {
  SaveOptions options;
  options.durable = false;
  return edit_metadata(folder / kFile, change, options);
}
MetadataEditReport set(const TempDir& folder, const std::string& key, const std::string& value) {
  return edit(folder, {.set = {{key, value}}, .unset = {}});
}
MetadataEditReport unset(const TempDir& folder, const std::string& key) {
  return edit(folder, {.set = {}, .unset = {key}});
}

ino_t inode(const std::string& path) {
  struct stat file = {};
  EXPECT_EQ(lstat(path.c_str(), &file), 0);
  return file.st_ino;
}

std::string header_of(const TempDir& folder) {
  const std::string text = folder.read(kFile);
  std::uint64_t length = 0;
  std::memcpy(&length, text.data(), sizeof length);
  return text.substr(8, length);
}

std::string without_padding(std::string header) { return header.erase(header.find_last_not_of(' ') + 1); }

TEST(EditMetadata, StaysInPlaceIfThePaddingHasRoom) {
  const TempDir folder;
  auto file = SafetensorsFile().metadata({{"format", "pt"}}).tensor("w", "F32", {1000});
  file.pad_header_to(400).write(folder, kFile);
  const std::string before = folder.read(kFile);
  const ino_t node = inode(folder / kFile);

  const MetadataEditReport report = set(folder, "author", "somebody");
  EXPECT_TRUE(report.changed);
  EXPECT_TRUE(report.in_place);
  EXPECT_EQ(inode(folder / kFile), node);
  const std::string after = folder.read(kFile);
  ASSERT_EQ(after.size(), before.size());
  EXPECT_EQ(after.substr(408), before.substr(408));
  EXPECT_EQ(open(folder / kFile).metadata, (Metadata{{"author", "somebody"}, {"format", "pt"}}));
}

TEST(EditMetadata, FillsThePaddingToTheLastSpace) {
  for (std::size_t extra = 0; extra < 20; ++extra) {
    const TempDir folder;
    auto file = SafetensorsFile().metadata({{"k", ""}}).tensor("w", "U8", {3});
    file.pad_header_to(file.header().size() + 10).write(folder, kFile);
    const std::string data = folder.read(kFile).substr(8 + file.header().size());
    const MetadataEditReport report = set(folder, "k", std::string(extra, 'v'));
    EXPECT_EQ(report.in_place, extra <= 10) << extra;
    EXPECT_EQ(open(folder / kFile).metadata, (Metadata{{"k", std::string(extra, 'v')}}));
    EXPECT_EQ(test::text_of(open(folder / kFile).at("w")), data);
    EXPECT_EQ(folder.names(), std::set<std::string>{kFile});
  }
}

TEST(EditMetadata, WritesANewFileIfThereIsNoRoom) {
  const TempDir folder;
  const auto file = SafetensorsFile().tensor("w", "F32", {1000}).tensor("v", "U8", {7});
  file.write(folder, kFile);
  const Checkpoint before = file.open();
  const Checkpoint reader = open(folder / kFile);  // reads the old file
  const MetadataEditReport report = set(folder, "long", std::string(5000, 'x'));
  EXPECT_TRUE(report.changed);
  EXPECT_FALSE(report.in_place);
  const Checkpoint after = open(folder / kFile);
  EXPECT_EQ(after.metadata.at("long").size(), 5000u);
  for (const auto& [name, tensor] : before) {
    EXPECT_EQ(test::text_of(after.at(name)), test::text_of(tensor));
    EXPECT_EQ(test::text_of(reader.at(name)), test::text_of(tensor));
  }
  EXPECT_EQ(header_of(folder).size() % 8, 0u);
  EXPECT_EQ(folder.names(), std::set<std::string>{kFile});
}

TEST(EditMetadata, LeavesTheRestOfTheHeaderAsItWas) {
  const TempDir folder;
  const std::string around = R"( , "w" : {"x":{"y":[1, 2.50]}, "shape":[ 1 ], "dtype":"U8" , "data_offsets":[0,1]}})";
  SafetensorsFile(R"({ "__metadata__" : { "a" : "b" })" + around).pad_header_to(300).data(1).write(folder, kFile);
  set(folder, "a", "c");
  EXPECT_EQ(without_padding(header_of(folder)), R"({ "__metadata__":{"a":"c"})" + around);
}

TEST(EditMetadata, LeavesMetadataAtItsPositionInTheHeader) {
  const TempDir folder;
  SafetensorsFile().tensor("w", "U8", {1}).metadata({{"a", "b"}}).tensor("v", "U8", {1}).write(folder, kFile);
  set(folder, "a", "c");
  EXPECT_EQ(without_padding(header_of(folder)),
            SafetensorsFile().tensor("w", "U8", {1}).metadata({{"a", "c"}}).tensor("v", "U8", {1}).header());
}

TEST(EditMetadata, AddsMetadataToAFileThatHasNone) {
  const char* const headers[] = {"{}",
                                 " { } ",
                                 R"({"w":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})",
                                 "\n{\n\"w\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}\n}\n",
                                 R"({"__metadata__":null})",
                                 R"({"__metadata__":{}})",
                                 R"({"w":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"__metadata__" : null })"};
  for (const char* header : headers) {
    const TempDir folder;
    const auto file = SafetensorsFile(header);
    file.write(folder, kFile);
    set(folder, "k", "v");
    const Checkpoint after = open(folder / kFile);
    EXPECT_EQ(after.metadata, (Metadata{{"k", "v"}})) << header;
    EXPECT_EQ(after.size(), file.open().size()) << header;
  }
}

TEST(EditMetadata, KeepsAHeaderThatWasNeverAligned) {
  const TempDir folder;
  auto file = SafetensorsFile().metadata({{"k", "value"}}).tensor("w", "F32", {2});
  file.pad_header_to(101).write(folder, kFile);
  EXPECT_TRUE(set(folder, "k", "v").in_place);
  EXPECT_EQ(header_of(folder).size(), 101u);
}

TEST(EditMetadata, TakesKeysAway) {
  const TempDir folder;
  SafetensorsFile().metadata({{"a", "1"}, {"b", "2"}}).tensor("w", "U8", {1}).write(folder, kFile);
  EXPECT_TRUE(unset(folder, "a").in_place);
  EXPECT_EQ(open(folder / kFile).metadata, (Metadata{{"b", "2"}}));
  EXPECT_TRUE(unset(folder, "b").in_place);
  EXPECT_TRUE(open(folder / kFile).metadata.empty());
  EXPECT_ERROR(unset(folder, "b"), Errc::not_found, "the metadata has no \"b\"");
}

TEST(EditMetadata, WritesNothingIfNothingChanges) {
  const TempDir folder;
  SafetensorsFile(R"({ "__metadata__" : {"a" : "b"} })").write(folder, kFile);
  const std::string before = folder.read(kFile);
  EXPECT_FALSE(set(folder, "a", "b").changed);
  EXPECT_FALSE(edit(folder, {}).changed);
  EXPECT_EQ(folder.read(kFile), before);
}

TEST(EditMetadata, EscapesWhatItWrites) {
  const TempDir folder;
  SafetensorsFile("{}").write(folder, kFile);
  const std::string odd = std::string("\"\\/\n\0\x7f", 6) + "\u00e9\U0001F600";
  set(folder, odd, odd);
  EXPECT_EQ(open(folder / kFile).metadata, (Metadata{{odd, odd}}));
}

TEST(EditMetadata, RefusesWhatIsNotUtf8AndLeavesTheFile) {
  const TempDir folder;
  SafetensorsFile("{}").write(folder, kFile);
  const std::string before = folder.read(kFile);
  EXPECT_ERROR(set(folder, "k", "\xFF"), Errc::unsupported, "x.safetensors: metadata \"k\" is not UTF-8");
  EXPECT_EQ(folder.read(kFile), before);
}

TEST(EditMetadata, RefusesAHeaderOverTheLimit) {
  const TempDir folder;
  SafetensorsFile("{}").write(folder, kFile);
  SaveOptions options;
  options.limits.max_header_bytes = 64;
  EXPECT_ERROR(edit_metadata(folder / kFile, {.set = {{"k", std::string(100, 'v')}}, .unset = {}}, options),
               Errc::limit, "more than the 64");
}

TEST(EditMetadata, RefusesWhatItCannotRead) {
  const TempDir folder;
  SafetensorsFile("{").write(folder, kFile);
  EXPECT_ERROR(set(folder, "k", "v"), Errc::malformed, kFile);
  folder.write(kFile, "");
  EXPECT_ERROR(set(folder, "k", "v"), Errc::malformed, kFile);
  folder.write(kFile, "GGUF\x03");
  EXPECT_ERROR(set(folder, "k", "v"), Errc::malformed, "ends inside the version");
  folder.write(kFile, R"({"weight_map":{}})");
  EXPECT_ERROR(set(folder, "k", "v"), Errc::unsupported, "an index of shards");
}

// A file with a second name may also belong to somebody else.
TEST(EditMetadata, GivesAHardLinkAFileOfItsOwn) {
  const TempDir folder;
  auto file = SafetensorsFile().metadata({{"k", "old"}}).tensor("w", "U8", {4});
  file.pad_header_to(200).write(folder, kFile);
  fs::create_hard_link(folder / kFile, folder / "twin");
  const std::string before = folder.read("twin");
  EXPECT_FALSE(set(folder, "k", "new").in_place);
  EXPECT_EQ(folder.read("twin"), before);
  EXPECT_EQ(open(folder / kFile).metadata.at("k"), "new");
  EXPECT_TRUE(set(folder, "k", "newer").in_place);  // now the file has only one name
}

TEST(EditMetadata, GivesALinkAFileOfItsOwn) {
  const TempDir folder;
  auto file = SafetensorsFile().metadata({{"k", "old"}}).tensor("w", "U8", {4});
  file.pad_header_to(200).write(folder, "blob");
  fs::create_symlink("blob", folder / kFile);
  const std::string before = folder.read("blob");
  EXPECT_FALSE(set(folder, "k", "new").in_place);
  EXPECT_EQ(folder.read("blob"), before);
  EXPECT_FALSE(fs::is_symlink(folder / kFile));
  EXPECT_EQ(open(folder / kFile).metadata.at("k"), "new");
  EXPECT_EQ(test::text_of(open(folder / kFile).at("w")), test::text_of(file.open().at("w")));
}

TEST(EditMetadata, DoesNotRemoveATensorThatIsOnlyAnAliasInTheMetadata) {
  const TempDir folder;
  SafetensorsFile().metadata({{"head", "emb"}, {"a", "b"}}).tensor("emb", "U8", {4}).write(folder, kFile);
  EXPECT_ERROR(unset(folder, "head"), Errc::invalid_argument, "\"head\" is a tensor");
  EXPECT_ERROR(set(folder, "head", "x"), Errc::invalid_argument, "\"head\" is a tensor");
  set(folder, "a", "c");
  EXPECT_EQ(open(folder / kFile).size(), 2u);
}

TEST(EditMetadata, KeepsBytesBehindTheLastTensor) {
  const TempDir folder;
  SafetensorsFile().tensor("w", "U8", {1}).data("wtail").write(folder, kFile);
  EXPECT_FALSE(set(folder, "k", "v").in_place);
  EXPECT_TRUE(folder.read(kFile).ends_with("wtail"));
}

}  // namespace
}  // namespace ballast
