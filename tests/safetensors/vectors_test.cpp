// Every safetensors file beside the repository, against what an independent reader says is in it.
#include <gtest/gtest.h>

#include <ballast/hash.hpp>
#include <ballast/open.hpp>

#include <map>

#include "support/expect_error.hpp"
#include "support/json_file.hpp"
#include "support/shared_files.hpp"

namespace ballast {
namespace {

namespace dom = simdjson::dom;

std::map<std::string, std::string> hashes_of(const Checkpoint& checkpoint) {
  std::map<std::string, std::string> hashes;
  for (const auto& tensor : hash(checkpoint).tensors) hashes.emplace(tensor.name, tensor.sha256.value());
  return hashes;
}

Shape shape_of(dom::array dims) {
  std::vector<std::uint64_t> shape;
  for (const dom::element dim : dims) shape.push_back(dim);
  return Shape(shape);
}

// `tensors`: [{"name", "dtype", "shape", "data_offsets", "sha256"}, ...]
void expect_tensors(const Checkpoint& checkpoint, dom::array tensors) {
  const auto hashes = hashes_of(checkpoint);
  std::size_t count = 0;
  for (const dom::element expected : tensors) {
    const std::string_view name = expected["name"];
    const Tensor* tensor = checkpoint.find(name);
    ASSERT_NE(tensor, nullptr) << name;
    EXPECT_EQ(ballast::name(tensor->dtype()), expected["dtype"].get_string().value()) << name;
    EXPECT_EQ(tensor->shape(), shape_of(expected["shape"])) << name;
    const dom::array offsets = expected["data_offsets"];
    EXPECT_EQ(tensor->offset(), offsets.at(0).get_uint64().value()) << name;
    EXPECT_EQ(tensor->offset() + tensor->nbytes(), offsets.at(1).get_uint64().value()) << name;
    EXPECT_EQ(hashes.at(std::string(name)), expected["sha256"].get_string().value()) << name;
    ++count;
  }
  EXPECT_EQ(checkpoint.size() - checkpoint.aliases.size(), count);
}

void expect_metadata(const Checkpoint& checkpoint, dom::element expected) {
  Metadata metadata;
  dom::object object;
  if (expected.get(object) == simdjson::SUCCESS) {
    for (const auto& [key, value] : object) metadata.emplace(key, value.get_string().value());
  }
  EXPECT_EQ(checkpoint.metadata, metadata);
}

TEST(SafetensorsVectors, ReadAsTheReferenceLibraryWroteThem) {
  SKIP_WITHOUT_SHARED("vectors/safetensors");
  const auto files = test::shared_files("vectors/safetensors", ".safetensors.expected.json");
  EXPECT_GE(files.size(), 9u);
  for (const auto& path : files) {
    SCOPED_TRACE(path);
    dom::parser parser;
    const dom::element expected = test::parse_json_file(parser, path);
    const std::string file = path.string().substr(0, path.string().size() - std::string(".expected.json").size());
    const Checkpoint checkpoint = open(file);
    expect_metadata(checkpoint, expected["metadata"]);
    expect_tensors(checkpoint, expected["tensors"]);
    EXPECT_EQ(checkpoint.files.at(0).bytes, expected["file_size"].get_uint64().value());
    EXPECT_TRUE(checkpoint.notes.empty());
  }
}

TEST(SafetensorsVectors, OfEdgeFilesAreReadOrRefusedAsTheReferenceLibraryDoes) {
  SKIP_WITHOUT_SHARED("vectors/safetensors");
  dom::parser parser;
  const dom::element edge =
      test::parse_json_file(parser, test::shared_path("vectors/safetensors/edge_files.expected.json"));
  for (const dom::element expected : edge["files"].get_array()) {
    const std::string_view file = expected["file"];
    SCOPED_TRACE(file);
    const std::string path = test::shared_path("vectors/safetensors/" + std::string(file));
    const auto error = test::error_of([&] { open(path); });
    if (file == "ok_duplicate_key.safetensors") {  // two readers would see two tensors: refused on purpose
      EXPECT_TRUE(test::is_error(error, Errc::malformed, "tensor \"a\" is there twice"));
      continue;
    }
    const bool accepted = expected["library_accepts"];
    ASSERT_EQ(!error.has_value(), accepted) << (error ? error->what() : "");
    if (!accepted) {
      EXPECT_EQ(error->where(), path);
      EXPECT_TRUE(error->code() == Errc::malformed || error->code() == Errc::limit ||
                  error->code() == Errc::unsupported);
      continue;
    }
    const Checkpoint checkpoint = open(path);
    for (const dom::element key : expected["keys"].get_array())
      EXPECT_TRUE(checkpoint.contains(key.get_string().value()));
    EXPECT_EQ(checkpoint.notes.size(), file == "ok_leading_space.safetensors" ? 1u : 0u);
  }
}

TEST(SafetensorsVectors, OfWholeFoldersRead) {
  SKIP_WITHOUT_SHARED("vectors/safetensors/sharded_hub");
  for (const char* folder : {"sharded_hub", "sharded_transformers", "single_transformers"}) {
    SCOPED_TRACE(folder);
    const std::string path = test::shared_path(std::string("vectors/safetensors/") + folder);
    dom::parser parser;
    const dom::element expected = test::parse_json_file(parser, path + "/expected.json");
    const Checkpoint whole = open(path);
    EXPECT_TRUE(whole.notes.empty());
    std::size_t count = 0, shards = 0;
    const auto hashes = hashes_of(whole);
    for (const auto& [file, tensors] : expected["files"].get_object()) {
      expect_tensors(open(path + "/" + std::string(file)), tensors);
      ++shards;
      for (const dom::element tensor : tensors.get_array()) {
        EXPECT_EQ(hashes.at(std::string(tensor["name"].get_string().value())), tensor["sha256"].get_string().value());
        ++count;
      }
    }
    EXPECT_EQ(whole.size() - whole.aliases.size(), count);
    EXPECT_EQ(whole.shards, shards);
  }
}

// Real files from public repositories, by writers of all ages: unpadded headers, data askew.
TEST(SafetensorsFixtures, ReadAsAnIndependentReaderSays) {
  SKIP_WITHOUT_SHARED("fixtures/safetensors");
  const auto files = test::shared_files("fixtures/safetensors", ".safetensors");
  EXPECT_GE(files.size(), 18u);
  for (const auto& path : files) {
    SCOPED_TRACE(path.filename());
    const std::string expectation =
        test::shared_path("fixtures/expected/safetensors__" + path.filename().string() + ".json");
    ASSERT_TRUE(std::filesystem::exists(expectation));
    dom::parser parser;
    const dom::element expected = test::parse_json_file(parser, expectation);
    const Checkpoint checkpoint = open(path.string());
    expect_tensors(checkpoint, expected["tensors"]);
    expect_metadata(checkpoint, expected["metadata"]);
  }
}

}  // namespace
}  // namespace ballast
