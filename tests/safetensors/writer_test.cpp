// What is written is byte for byte what the reference library writes, and always the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include <ballast/open.hpp>
#include <ballast/save.hpp>

#include "builders/safetensors_file.hpp"
#include "support/expect_error.hpp"
#include "support/files.hpp"
#include "support/tensor_values.hpp"
#include "support/vectors.hpp"

namespace ballast {
namespace {

using test::SafetensorsFile;
using test::TempDir;

std::string saved(const Checkpoint& checkpoint, SaveOptions options = {}) {
  const TempDir folder;
  options.durable = false;
  options.allow_empty = true;
  save(checkpoint, folder / "out.safetensors", options);
  return folder.read("out.safetensors");
}

Checkpoint of(std::string_view name, DType dtype, const Shape& shape) {
  Checkpoint checkpoint;
  const std::vector<std::byte> bytes(bytes_of(dtype, shape.numel().value()).value(), std::byte{1});
  checkpoint.tensors.insert(name, Tensor::from_bytes(dtype, shape, bytes));
  return checkpoint;
}

using namespace std::string_literals;

// The vectors are those of the format's notes, 1.4.
TEST(SafetensorsWriter, WritesTheKnownVectors) {
  EXPECT_EQ(saved({}), "\x08\0\0\0\0\0\0\0{}      "s);

  const std::string attn = saved(of("attn.0", DType::f32, {1, 2, 3}));
  EXPECT_EQ(attn.substr(0, 72),
            "\x40\0\0\0\0\0\0\0"s + R"({"attn.0":{"dtype":"F32","shape":[1,2,3],"data_offsets":[0,24]}})");
  EXPECT_EQ(attn.size(), 72u + 24);

  const std::string padded = saved(of("attn0", DType::f32, {1, 1, 2, 3}));
  EXPECT_EQ(padded.substr(0, 80),
            "\x48\0\0\0\0\0\0\0"s + R"({"attn0":{"dtype":"F32","shape":[1,1,2,3],"data_offsets":[0,24]}})" + "       ");
}

TEST(SafetensorsWriter, PutsWideDtypesFirstAndThenGoesByName) {
  Checkpoint checkpoint;
  std::vector<const DTypeInfo*> types;
  for (const DTypeInfo& type : all_dtypes()) {
    if (type.in_safetensors) types.push_back(&type);
  }
  std::shuffle(types.begin(), types.end(), std::mt19937(3));
  for (const DTypeInfo* type : types) {
    for (const char* name : {"b", "a", "B", "a.b", "\u00e9"}) {
      checkpoint.tensors.insert(std::string(type->name) + name, of("x", type->dtype, {8}).at("x"));
    }
  }
  std::vector<std::string> dtypes;
  std::string previous;
  for (const auto& [name, tensor] : open_bytes([&] {
         const std::string text = saved(checkpoint);
         const auto bytes = std::as_bytes(std::span(text));
         return std::vector<std::byte>(bytes.begin(), bytes.end());
       }())) {
    if (dtypes.empty() || dtypes.back() != ballast::name(tensor.dtype())) {
      dtypes.emplace_back(ballast::name(tensor.dtype()));
      previous.clear();
    }
    EXPECT_LT(previous, name);
    previous = name;
  }
  EXPECT_EQ(dtypes, (std::vector<std::string>{"U64",         "I64",     "F64",     "C64",     "F32", "U32",
                                              "I32",         "BF16",    "F16",     "U16",     "I16", "F8_E5M2FNUZ",
                                              "F8_E4M3FNUZ", "F8_E8M0", "F8_E4M3", "F8_E5M2", "I8",  "U8",
                                              "F6_E3M2",     "F6_E2M3", "F4",      "BOOL"}));
}

TEST(SafetensorsWriter, SortsMetadataAndEscapesAsTheReferenceDoes) {
  Checkpoint checkpoint;
  checkpoint.metadata = {{"b", "\x01\x1f\x7f\"\\/\b\f\n\r\t"}, {"a", "\u00e9"}, {"", ""}};
  EXPECT_EQ(saved(checkpoint).substr(8),
            R"({"__metadata__":{"":"","a":"é","b":"\u0001\u001f)"s + "\x7f" + R"(\"\\/\b\f\n\r\t"}}    )");
}

TEST(SafetensorsWriter, WritesTheSameBytesWithAnyNumberOfThreads) {
  SafetensorsFile file;
  for (int i = 0; i < 40; ++i)
    file.tensor("t" + std::to_string(i), i % 2 ? "F16" : "I64", {static_cast<std::uint64_t>(i * 1000)});
  const Checkpoint checkpoint = file.open();
  const std::string once = saved(checkpoint, {.threads = 1});
  for (const unsigned threads : {2u, 3u, 8u})
    EXPECT_EQ(saved(checkpoint, {.threads = threads, .memory_bytes = 1 << 16}), once);
}

TEST(SafetensorsWriter, SavesWhatItReadBackToTheSameBytes) {
  std::mt19937 random(11);
  std::vector<const DTypeInfo*> types;
  for (const DTypeInfo& type : all_dtypes()) {
    if (type.in_safetensors) types.push_back(&type);
  }
  for (int round = 0; round < 30; ++round) {
    SafetensorsFile file;
    const int count = static_cast<int>(random() % 30);
    for (int i = 0; i < count; ++i) {
      const std::vector<std::uint64_t> shape = {random() % 5, 8};
      file.tensor("layers." + std::to_string(i) + (random() % 3 ? ".w" : "\\n\\u00e9"),
                  types[random() % types.size()]->name, shape);
    }
    const Checkpoint checkpoint = file.open();
    const std::string first = saved(checkpoint);
    const auto bytes = std::as_bytes(std::span(first));
    const Checkpoint again = open_bytes({bytes.begin(), bytes.end()});
    EXPECT_EQ(saved(again), first);
    ASSERT_EQ(again.size(), checkpoint.size());
    for (const auto& [name, tensor] : checkpoint) {
      EXPECT_EQ(again.at(name).dtype(), tensor.dtype());
      EXPECT_EQ(again.at(name).shape(), tensor.shape());
      EXPECT_EQ(test::text_of(again.at(name)), test::text_of(tensor));
    }
  }
}

TEST(SafetensorsWriter, RefusesWhatTheFormatCannotHold) {
  EXPECT_ERROR(saved(of("w", DType::c128, {1})), Errc::unsupported,
               "tensor \"w\" has dtype C128, which safetensors cannot store");
  EXPECT_HINT(saved(of("w", DType::c128, {1})), "Selection::exclude");
  EXPECT_ERROR(saved(of("w", DType::q8_0, {32})), Errc::unsupported, "Q8_0");
  EXPECT_ERROR(saved(of("__metadata__", DType::u8, {1})), Errc::unsupported, "\"__metadata__\"");
  EXPECT_ERROR(saved(of("\xFF", DType::u8, {1})), Errc::unsupported, "not UTF-8");
  Checkpoint meta;
  meta.tensors.insert("w", Tensor(DType::u8, {4}, meta_storage(4)));
  EXPECT_ERROR(saved(meta), Errc::unsupported, "tensor \"w\" has no data");
  Checkpoint broken;
  broken.metadata["k"] = "\xFF";
  EXPECT_ERROR(saved(broken), Errc::unsupported, "metadata \"k\" is not UTF-8");
  for (const char* key : {"k\xFF", "\xFF\xFF"}) {
    broken.metadata = {{key, "v"}};
    EXPECT_ERROR(saved(broken), Errc::unsupported, "is not UTF-8");
  }
}

TEST(SafetensorsWriter, RefusesAHeaderThatNoReaderWouldAccept) {
  SaveOptions options;
  options.limits.max_header_bytes = 64;
  EXPECT_NO_THROW(saved(of("attn.0", DType::f32, {1, 2, 3}), options));
  EXPECT_ERROR(saved(of("attn0", DType::f32, {1, 1, 2, 3}), options), Errc::limit,
               "the header would have 72 bytes, more than the 64");
  EXPECT_HINT(saved(of("attn0", DType::f32, {1, 1, 2, 3}), options), "SaveOptions::max_shard_bytes");
  options.limits.max_header_bytes = 63;
  EXPECT_ERROR(saved(of("attn.0", DType::f32, {1, 2, 3}), options), Errc::limit, "64 bytes, more than the 63");
}

TEST(SafetensorsWriter, OverwritesTheFileThatItReadsFrom) {
  const TempDir folder;
  const auto path = SafetensorsFile().tensor("a", "F32", {1000}).tensor("b", "U8", {10}).write(folder, "x.safetensors");
  const std::string before = folder.read("x.safetensors");
  const Checkpoint checkpoint = open(path);
  save(checkpoint, path, {.overwrite = true, .durable = false});
  EXPECT_EQ(open(path).size(), 2u);
  EXPECT_EQ(test::text_of(open(path).at("a")), test::text_of(checkpoint.at("a")));
  EXPECT_EQ(folder.names(), (std::set<std::string>{"x.safetensors"}));
}

// Files that the reference library wrote are written again to the byte. With more than one key of metadata, that
// library writes the keys in the order of a hash map, which nobody can repeat: such a file has the same bytes in
// another order.
TEST(SafetensorsWriter, WritesWhatTheReferenceLibraryWrote) {
  std::size_t compared = 0;
  for (const auto& path : test::vector_files("safetensors", ".safetensors.expected.json")) {
    const std::string file = path.string().substr(0, path.string().size() - std::string(".expected.json").size());
    const Checkpoint checkpoint = open(file);
    const std::string reference = test::read_whole_file(file);
    if (checkpoint.metadata.size() <= 1) {
      EXPECT_EQ(saved(checkpoint), reference) << file;
      ++compared;
    } else {
      EXPECT_EQ(saved(checkpoint).size(), reference.size()) << file;
    }
  }
  EXPECT_GE(compared, 7u);
}

TEST(SafetensorsWriter, WritesTheShardsThatTheHubLibraryWrote) {
  const Checkpoint checkpoint = open(test::vector_path("safetensors/sharded_hub"));
  for (const auto& shard : checkpoint.files) {
    if (!shard.path.ends_with(".safetensors")) continue;
    EXPECT_EQ(saved(open(shard.path)), test::read_whole_file(shard.path)) << shard.path;
  }
}

}  // namespace
}  // namespace ballast
