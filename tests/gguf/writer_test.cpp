#include "formats/gguf/layout.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "formats/gguf/format.hpp"
#include "formats/gguf/split.hpp"
#include "read_bytes.hpp"
#include "save/plan.hpp"
#include "second_reader.hpp"
#include "support/expect_error.hpp"
#include "support/files.hpp"
#include "support/tensor_values.hpp"
#include "support/vectors.hpp"

namespace ballast {
namespace {

using test::GgufBuilder;
using test::kF32;
using test::kQ4_0;
using test::SecondReader;

std::vector<const StateDict::Entry*> entries_of(const StateDict& tensors) {
  std::vector<const StateDict::Entry*> entries;
  for (const auto& entry : tensors) entries.push_back(&entry);
  return entries;
}

// Puts together the file that a plan describes.
std::string assemble(const SavePlan::File& layout) {
  std::string file(layout.size_bytes, '\0');
  std::copy_n(reinterpret_cast<const char*>(layout.head.data()), layout.head.size(), file.begin());
  std::uint64_t end = layout.head.size();
  for (const auto& item : layout.items) {
    EXPECT_GE(item.offset, end) << item.name;
    const std::string bytes = test::text_of(item.tensor);
    end = item.offset + bytes.size();
    EXPECT_LE(end, file.size()) << item.name;
    std::copy(bytes.begin(), bytes.end(), file.begin() + static_cast<std::ptrdiff_t>(item.offset));
  }
  return file;
}

std::string written(const StateDict& tensors, const TypedMetadata& fields) {
  return assemble(gguf::lay_out(entries_of(tensors), fields));
}

std::string written(const gguf::GgufFile& file) {
  return assemble(gguf::lay_out(entries_of(file.checkpoint.tensors), file.fields, file.unknown_types));
}

std::vector<SavePlan::File> parts_of(const Checkpoint& model, const std::string& path, std::uint64_t max_bytes) {
  return plan_files(model, gguf::kFormat, path, {.max_shard_bytes = max_bytes}).files;
}

StateDict numbered_tensors(std::size_t count, std::uint64_t elements) {
  StateDict tensors;
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<float> values(elements, static_cast<float>(i));
    tensors.insert("t" + std::to_string(i), Tensor::from_values<float>(DType::f32, Shape{elements}, values));
  }
  return tensors;
}

TEST(GgufWriter, WritesTheBytesThatGgufPyWroteForTheSameFile) {
  std::size_t count = 0;
  for (const auto& path : test::vector_files("gguf", ".gguf")) {
    const std::string name = path.filename();
    // These are not of version 3, not little-endian, or against the rules.
    if (name.starts_with("bad_") || name.starts_with("version") || name.starts_with("big_endian")) continue;
    if (name == "offsets_out_of_order.gguf" || name == "long_tensor_name.gguf") continue;
    SCOPED_TRACE(name);
    const std::string original = test::read_whole_file(path);
    const std::string copy = written(gguf::read(test::source_of(original)));
    EXPECT_TRUE(copy == original);
    SecondReader second(copy);
    ++count;
  }
  EXPECT_GE(count, 15u);
}

TEST(GgufWriter, MakesTheLittleEndianTwinOfABigEndianFile) {
  const auto big = gguf::read(file_source(test::vector_path("gguf/big_endian_quant.gguf")));
  EXPECT_TRUE(written(big) == test::read_whole_file(test::vector_path("gguf/little_endian_twin.gguf")));
}

TEST(GgufWriter, MakesVersion3OfOlderOnes) {
  const auto old =
      read_gguf(GgufBuilder(1).kv("general.name", "old").strings("words", {"a", ""}).tensor("w", kF32, {2, 3}));
  const auto young =
      read_gguf(GgufBuilder(3).kv("general.name", "old").strings("words", {"a", ""}).tensor("w", kF32, {2, 3}));
  EXPECT_EQ(written(old), written(young));
}

TEST(GgufWriter, LaysOutTensorsOfAnyOrderByTheRules) {
  const auto odd = read_gguf(
      GgufBuilder().tensor_at("late", kF32, {1}, 96).tensor_at("early", kF32, {2}, 0).data(std::string(100, 'x')));
  const std::string file = written(odd);
  const SecondReader second(file);
  ASSERT_EQ(second.tensors.size(), 2u);
  EXPECT_EQ(second.tensors[0].name, "late");
  EXPECT_EQ(second.tensors[0].bytes, "xxxx");
}

TEST(GgufWriter, WritesWhatASecondReaderReads) {
  TypedMetadata fields;
  fields.set(MetadataEntry::of("general.architecture", "llama"));
  fields.set(MetadataEntry::of("general.alignment", std::uint32_t{64}));
  fields.set(MetadataEntry::of("x.flag", true));
  fields.set(MetadataEntry::of("x.epsilon", 1e-5f));
  const std::string words[] = {"<s>", "", "é"};
  fields.set(MetadataEntry::strings("tokenizer.ggml.tokens", words));
  const std::int32_t kinds[] = {3, -1};
  fields.set(MetadataEntry::numbers<std::int32_t>("tokenizer.ggml.token_type", kinds));
  StateDict tensors = numbered_tensors(2, 3);
  const std::string blocks(36, 'b');
  tensors.insert("q", Tensor::from_bytes(DType::q4_0, Shape{2, 32}, std::as_bytes(std::span(blocks))));
  tensors.insert("empty", Tensor::from_bytes(DType::f32, Shape{0, 2}, {}));
  tensors.insert("scalar", Tensor::from_values<float>(DType::f32, Shape{}, std::vector<float>{5}));

  const std::string file = written(tensors, fields);
  const SecondReader second(file);
  ASSERT_EQ(second.values.size(), 6u);
  EXPECT_EQ(second.values[0].items, std::vector<std::string>{"llama"});
  EXPECT_EQ(second.values[2].type, 7);
  EXPECT_EQ(second.values[4].items, (std::vector<std::string>{"<s>", "", "é"}));
  EXPECT_EQ(second.values[5].items[1], "\xFF\xFF\xFF\xFF");
  ASSERT_EQ(second.tensors.size(), 5u);
  EXPECT_EQ(second.tensors[2].dims, (std::vector<std::uint64_t>{32, 2}));
  EXPECT_EQ(second.tensors[2].bytes, blocks);
  EXPECT_EQ(second.tensors[3].dims, (std::vector<std::uint64_t>{2, 0}));
  EXPECT_TRUE(second.tensors[4].dims.empty());
  EXPECT_EQ(gguf::read(test::source_of(file)).fields, fields);
}

TEST(GgufWriter, PutsUnknownTypesBackAsTheyWere) {
  const GgufBuilder original = GgufBuilder().kv("k", 1u).tensor("q", {57, 32, 20}, {64}).tensor("w", kF32, {2});
  EXPECT_EQ(written(read_gguf(original)), original.text());
}

TEST(GgufWriter, RefusesWhatGgufCannotStoreAndHintsAtAWay) {
  const auto lay_out_one = [](const std::string& name, const Tensor& tensor) {
    StateDict tensors;
    tensors.insert(name, tensor);
    return gguf::lay_out(entries_of(tensors), {});
  };
  const auto bytes = [](DType dtype, Shape shape) {
    return Tensor::from_bytes(dtype, shape, std::vector<std::byte>(*ballast::bytes_of(dtype, *shape.numel())));
  };
  EXPECT_NO_THROW(lay_out_one(std::string(63, 'n'), bytes(DType::f32, {1})));
  EXPECT_ERROR(lay_out_one(std::string(64, 'n'), bytes(DType::f32, {1})), Errc::unsupported,
               "a name of 64 bytes, and GGUF allows 63");
  EXPECT_HINT(lay_out_one(std::string(64, 'n'), bytes(DType::f32, {1})), "rename()");
  for (const DType dtype : {DType::u8, DType::f8_e4m3, DType::boolean, DType::c64, DType::u32}) {
    EXPECT_ERROR(lay_out_one("w", bytes(dtype, {4})), Errc::unsupported,
                 "tensor \"w\" has dtype " + std::string(name(dtype)) + ", which ggml has no type for");
    EXPECT_HINT(lay_out_one("w", bytes(dtype, {4})),
                dtype == DType::f8_e4m3 ? "cast()" : "write a .safetensors or a .pt");
  }
  EXPECT_ERROR(lay_out_one("w", bytes(DType::f32, {1, 1, 1, 1, 1})), Errc::unsupported,
               "has 5 dimensions, and GGUF allows 4");
  EXPECT_ERROR(lay_out_one("w", Tensor(DType::f32, {4}, meta_storage(16))), Errc::unsupported, "no data");
  EXPECT_ERROR(lay_out_one("w", bytes(DType::q8_0, {2, 16})), Errc::unsupported,
               "has rows of 16 elements, which are no whole blocks of 32");

  TypedMetadata fields;
  fields.set(MetadataEntry::of("general.alignment", std::uint32_t{24}));
  EXPECT_ERROR(gguf::lay_out({}, fields), Errc::malformed, "power of two");
  Limits limits;
  limits.max_header_bytes = 10;
  EXPECT_ERROR(gguf::lay_out({}, {}, {}, limits), Errc::limit, "24 bytes");
}

TEST(GgufWriter, SplitsAsGgufSplitDoes) {
  Checkpoint model;
  model.tensors = numbered_tensors(7, 8);  // each of 32 bytes
  model.typed_metadata.set(MetadataEntry::of("general.architecture", "llama"));
  model.typed_metadata.set(
      MetadataEntry::of("split.count", std::uint16_t{9}));  // from the set that the model came from
  const auto parts = parts_of(model, "dir/model.gguf", 96);
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[0].path, "dir/model-00001-of-00003.gguf");
  EXPECT_EQ(parts[2].path, "dir/model-00003-of-00003.gguf");
  std::size_t number = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string file = assemble(parts[i]);
    const SecondReader second(file);
    EXPECT_EQ(second.values.size(), i == 0 ? 4u : 3u);
    EXPECT_EQ(second.uint_of("split.no"), i);
    EXPECT_EQ(second.uint_of("split.count"), 3u);
    EXPECT_EQ(second.uint_of("split.tensors.count"), 7u);
    for (const auto& tensor : second.tensors) EXPECT_EQ(tensor.name, "t" + std::to_string(number++));
  }
  EXPECT_EQ(number, 7u);

  const auto whole = parts_of(model, "dir/model.gguf", 0);
  ASSERT_EQ(whole.size(), 1u);
  EXPECT_EQ(whole[0].path, "dir/model.gguf");
  const std::string file = assemble(whole[0]);
  EXPECT_EQ(SecondReader(file).values.size(), 1u);
  EXPECT_EQ(parts_of(model, "m.gguf", 1).size(), 7u);  // a tensor that is too large has a file of its own
}

TEST(GgufWriter, MakesTheSamePartsAsGgufPy) {
  const std::string first = test::vector_path("gguf/split_by_tensors-00001-of-00003.gguf");
  auto whole = test::open_set(first);
  whole.checkpoint.typed_metadata = std::move(whole.fields);
  const auto parts = parts_of(whole.checkpoint, "x.gguf", 3 * 128);
  ASSERT_EQ(parts.size(), 3u);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string path = test::part_path(gguf::parse_part_name(first)->stem, i + 1, 3);
    EXPECT_TRUE(assemble(parts[i]) == test::read_whole_file(path)) << path;
  }
}

}  // namespace
}  // namespace ballast
