// Every safetensors file beside the repository, against what an independent reader says is in it.
#include <gtest/gtest.h>

#include <ballast/hash.hpp>
#include <ballast/open.hpp>

#include <filesystem>
#include <map>

#include "support/expect_error.hpp"
#include "support/fixtures.hpp"
#include "support/json_file.hpp"
#include "support/vectors.hpp"

namespace ballast {
namespace {

std::map<std::string, std::string> hashes_of(const Checkpoint& checkpoint) {
  std::map<std::string, std::string> hashes;
  for (const auto& tensor : hash(checkpoint).tensors) hashes.emplace(tensor.name, tensor.sha256.value());
  return hashes;
}

// `tensors` is [{"name", "dtype", "shape", "data_offsets", "sha256"}, ...].
void expect_tensors(const Checkpoint& checkpoint, const Json& tensors) {
  const auto hashes = hashes_of(checkpoint);
  std::size_t count = 0;
  for (const Json& expected : tensors.list()) {
    const std::string& name = expected.at("name").text();
    const Tensor* tensor = checkpoint.find(name);
    ASSERT_NE(tensor, nullptr) << name;
    EXPECT_EQ(ballast::name(tensor->dtype()), expected.at("dtype").text()) << name;
    EXPECT_EQ(tensor->shape(), Shape(test::counts(expected.at("shape")))) << name;
    const std::vector<std::uint64_t> offsets = test::counts(expected.at("data_offsets"));
    EXPECT_EQ(tensor->offset(), offsets.at(0)) << name;
    EXPECT_EQ(tensor->offset() + tensor->nbytes(), offsets.at(1)) << name;
    EXPECT_EQ(hashes.at(name), expected.at("sha256").text()) << name;
    ++count;
  }
  EXPECT_EQ(checkpoint.size() - checkpoint.aliases.size(), count);
}

void expect_metadata(const Checkpoint& checkpoint, const Json& expected) {
  Metadata metadata;
  if (!expected.is_null()) {
    for (const auto& [key, value] : expected.members()) metadata.emplace(key, value.text());
  }
  EXPECT_EQ(checkpoint.metadata, metadata);
}

TEST(SafetensorsVectors, ReadAsTheReferenceLibraryWroteThem) {
  const auto files = test::vector_files("safetensors", ".safetensors.expected.json");
  EXPECT_GE(files.size(), 9u);
  for (const auto& path : files) {
    SCOPED_TRACE(path);
    const Json expected = test::read_json(path);
    const std::string file = path.string().substr(0, path.string().size() - std::string(".expected.json").size());
    const Checkpoint checkpoint = open(file);
    expect_metadata(checkpoint, expected.at("metadata"));
    expect_tensors(checkpoint, expected.at("tensors"));
    EXPECT_EQ(checkpoint.files.at(0).bytes, expected.at("file_size").count());
    EXPECT_TRUE(checkpoint.notes.empty());
  }
}

TEST(SafetensorsVectors, OfEdgeCasesAreReadOrRefusedAsByTheReferenceLibrary) {
  const Json edge = test::read_json(test::vector_path("safetensors/edge_files.expected.json"));
  for (const Json& expected : edge.at("files").list()) {
    const std::string& file = expected.at("file").text();
    SCOPED_TRACE(file);
    const std::string path = test::vector_path("safetensors/" + file);
    const auto error = test::error_of([&] { open(path); });
    if (file == "ok_duplicate_key.safetensors") {  // two readers would see two tensors: we refuse the file on purpose
      EXPECT_TRUE(test::is_error(error, Errc::malformed, "tensor \"a\" is there twice"));
      continue;
    }
    const bool accepted = expected.at("library_accepts").boolean();
    ASSERT_EQ(!error.has_value(), accepted) << (error ? error->what() : "");
    if (!accepted) {
      EXPECT_EQ(error->where(), path);
      EXPECT_TRUE(error->code() == Errc::malformed || error->code() == Errc::limit ||
                  error->code() == Errc::unsupported);
      continue;
    }
    const Checkpoint checkpoint = open(path);
    for (const Json& key : expected.at("keys").list()) EXPECT_TRUE(checkpoint.contains(key.text()));
    EXPECT_EQ(checkpoint.notes.size(), file == "ok_leading_space.safetensors" ? 1u : 0u);
  }
}

TEST(SafetensorsVectors, OfWholeFoldersAreRead) {
  for (const char* folder : {"sharded_hub", "sharded_transformers", "single_transformers"}) {
    SCOPED_TRACE(folder);
    const std::string path = test::vector_path(std::string("safetensors/") + folder);
    const Json expected = test::read_json(path + "/expected.json");
    const Checkpoint whole = open(path);
    EXPECT_TRUE(whole.notes.empty());
    std::size_t count = 0, shards = 0;
    const auto hashes = hashes_of(whole);
    for (const auto& [file, tensors] : expected.at("files").members()) {
      expect_tensors(open(path + "/" + file), tensors);
      ++shards;
      for (const Json& tensor : tensors.list()) {
        EXPECT_EQ(hashes.at(tensor.at("name").text()), tensor.at("sha256").text());
        ++count;
      }
    }
    EXPECT_EQ(whole.size() - whole.aliases.size(), count);
    EXPECT_EQ(whole.shards, shards);
  }
}

// Real files from public repositories, by old and new writers: some have unpadded headers or data that are not aligned.
TEST(SafetensorsFixtures, ReadAsAnIndependentReaderSays) {
  SKIP_WITHOUT_FIXTURES("safetensors");
  const auto files = test::fixture_files("safetensors", ".safetensors");
  EXPECT_GE(files.size(), 18u);
  for (const auto& path : files) {
    SCOPED_TRACE(path.filename());
    const std::string expectation = test::fixture_path("expected/safetensors__" + path.filename().string() + ".json");
    ASSERT_TRUE(std::filesystem::exists(expectation));
    const Json expected = test::read_json(expectation);
    const Checkpoint checkpoint = open(path.string());
    expect_tensors(checkpoint, expected.at("tensors"));
    expect_metadata(checkpoint, expected.at("metadata"));
  }
}

}  // namespace
}  // namespace ballast
