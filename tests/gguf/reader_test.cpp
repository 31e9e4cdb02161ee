#include "formats/gguf/reader.hpp"

#include <gtest/gtest.h>

#include "read_bytes.hpp"
#include "support/expect_error.hpp"
#include "support/tensor_values.hpp"
#include "tensor/decoded_storage.hpp"

namespace ballast {
namespace {

using test::GgufBuilder;
using test::kF16;
using test::kF32;
using test::kQ4_0;
using test::read_gguf;
using test::text_of;

GgufBuilder every_type(std::uint32_t version, std::endian order) {
  GgufBuilder file(version, order);
  file.kv_raw("u8", test::kU8, "\xFE").kv_raw("i8", test::kI8Value, "\xFE");
  file.kv_raw("u16", test::kU16, file.number(std::uint16_t{60000}));
  file.kv_raw("i16", test::kI16, file.number(std::int16_t{-2}));
  file.kv("u32", 4000000000u).kv_raw("i32", test::kI32, file.number(std::int32_t{-3}));
  file.kv_raw("f32", test::kF32Value, file.number(std::bit_cast<std::uint32_t>(0.5f)));
  file.kv_raw("yes", test::kBool, "\1").kv_raw("no", test::kBool, std::string_view("\0", 1)).kv("s", "text");
  file.kv_raw("u64", test::kU64, file.number(std::uint64_t{1} << 63));
  file.kv_raw("i64", test::kI64, file.number(std::int64_t{-5}));
  file.kv_raw("f64", test::kF64, file.number(std::bit_cast<std::uint64_t>(0.1)));
  file.array("numbers", test::kI16, 2, file.number(std::int16_t{-7}) + file.number(std::int16_t{300}));
  file.strings("words", {"a", "", "long word"});
  file.tensor("w", kF32, {2, 3}).tensor("b", kQ4_0, {32});
  return file;
}

TEST(GgufReader, ReadsEveryValueTypeInEveryVersionAndByteOrder) {
  for (const std::uint32_t version : {1u, 2u, 3u}) {
    for (const std::endian order : {std::endian::little, std::endian::big}) {
      SCOPED_TRACE(testing::Message() << "version " << version << (order == std::endian::big ? " big" : " little"));
      const auto file = read_gguf(every_type(version, order));
      const TypedMetadata& fields = file.fields;
      EXPECT_EQ(file.version, version);
      EXPECT_EQ(file.is_big_endian, order == std::endian::big);
      EXPECT_EQ(fields.size(), 15u);
      EXPECT_EQ(fields.find_uint("u8"), 254u);
      EXPECT_EQ(fields.find("i8")->as_int(), -2);
      EXPECT_EQ(fields.find_uint("u16"), 60000u);
      EXPECT_EQ(fields.find("i16")->as_int(), -2);
      EXPECT_EQ(fields.find_uint("u32"), 4000000000u);
      EXPECT_EQ(fields.find("i32")->as_int(), -3);
      EXPECT_EQ(fields.find("f32")->as_double(), 0.5);
      EXPECT_EQ(fields.find("yes")->as_bool(), true);
      EXPECT_EQ(fields.find("no")->as_bool(), false);
      EXPECT_EQ(fields.find_string("s"), "text");
      EXPECT_EQ(fields.find_uint("u64"), std::uint64_t{1} << 63);
      EXPECT_EQ(fields.find("i64")->as_int(), -5);
      EXPECT_EQ(fields.find("f64")->as_double(), 0.1);
      EXPECT_EQ(text(*fields.find("numbers")), "[-7, 300]");
      EXPECT_EQ(text(*fields.find("words")), "[\"a\", \"\", \"long word\"]");
      ASSERT_EQ(file.checkpoint.size(), 2u);
      EXPECT_EQ(file.checkpoint.at("w").shape(), (Shape{3, 2}));
      EXPECT_EQ(file.checkpoint.at("b").dtype(), DType::q4_0);
      EXPECT_EQ(file.checkpoint.format, Format::gguf);
    }
  }
}

TEST(GgufReader, SwapsTheElementsOfBigEndianFilesAndTheBlocksAsAsked) {
  const auto little = read_gguf(every_type(3, std::endian::little));
  const auto big = read_gguf(every_type(3, std::endian::big));
  std::string floats = text_of(little.checkpoint.at("w")), block = text_of(little.checkpoint.at("b"));
  for (std::size_t i = 0; i < floats.size(); i += 4)
    std::reverse(floats.begin() + static_cast<std::ptrdiff_t>(i), floats.begin() + static_cast<std::ptrdiff_t>(i) + 4);
  EXPECT_EQ(text_of(big.checkpoint.at("w")), floats);

  const auto as_is = read_gguf(every_type(3, std::endian::big), {.block_order = gguf::BlockOrder::as_is});
  EXPECT_EQ(text_of(as_is.checkpoint.at("b")), block);
  std::swap(block[0], block[1]);
  EXPECT_EQ(text_of(big.checkpoint.at("b")), block);
  ASSERT_EQ(big.checkpoint.notes.size(), 1u);
  EXPECT_EQ(big.checkpoint.notes[0].kind, Note::Kind::remark);
}

TEST(GgufReader, KeepsTheNamesAndTheMetadataAliveWithoutTheFile) {
  auto file = std::make_unique<gguf::GgufFile>(read_gguf(every_type(3, std::endian::little)));
  const MetadataEntry words = *file->fields.find("words");
  const StateDict tensors = file->checkpoint.tensors;
  file.reset();
  EXPECT_EQ(text(words), "[\"a\", \"\", \"long word\"]");
  EXPECT_TRUE(tensors.contains("w"));
}

TEST(GgufReader, TakesTheAlignmentFromItsKey) {
  const auto file = read_gguf(GgufBuilder().alignment(1024).tensor("a", kF32, {1}).tensor("b", kF32, {1}));
  EXPECT_EQ(file.alignment, 1024u);
  EXPECT_EQ(file.data_offset, 1024u);
  EXPECT_EQ(file.checkpoint.at("b").offset(), 1024u);
}

TEST(GgufReader, ReadsScalarsAndTensorsWithoutElements) {
  const auto file = read_gguf(GgufBuilder().tensor("empty", kF32, {4, 0}).tensor("scalar", kF32, {}));
  EXPECT_EQ(file.checkpoint.at("empty").shape(), (Shape{0, 4}));
  EXPECT_EQ(file.checkpoint.at("scalar").rank(), 0u);
  EXPECT_EQ(text_of(file.checkpoint.at("scalar")).size(), 4u);
}

TEST(GgufReader, ReadsFilesWithoutTensorsWhetherOrNotTheyArePadded) {
  const GgufBuilder file = GgufBuilder().kv("general.name", "none");
  EXPECT_TRUE(gguf::read(test::source_of(file.header())).checkpoint.notes.empty());
  EXPECT_TRUE(gguf::read(test::source_of(file.text())).checkpoint.notes.empty());
}

TEST(GgufReader, ReadsLongNamesWithANote) {
  const std::string just(63, 'n'), too(64, 'n');
  const auto file = read_gguf(GgufBuilder().tensor(just, kF32, {1}).tensor(too, kF32, {1}));
  EXPECT_TRUE(file.checkpoint.contains(too));
  ASSERT_EQ(file.checkpoint.notes.size(), 1u);
  EXPECT_NE(file.checkpoint.notes[0].text.find("a name of 64 bytes"), std::string::npos);
}

TEST(GgufReader, ReadsHolesAndAnotherOrderWithANoteEach) {
  const auto file =
      read_gguf(GgufBuilder().tensor_at("late", kF32, {1}, 96).tensor_at("early", kF32, {2}, 0).data(100));
  ASSERT_EQ(file.checkpoint.notes.size(), 2u);
  EXPECT_NE(file.checkpoint.notes[0].text.find("listed elsewhere"), std::string::npos);
  EXPECT_NE(file.checkpoint.notes[1].text.find("64 bytes before the data of tensor \"late\""), std::string::npos);
  EXPECT_EQ(file.checkpoint.at("late").offset(), 96u);
}

TEST(GgufReader, LetsTensorsShareBytesOnlyIfItIsLenientAndTheLimitsAllowIt) {
  GgufBuilder file;
  for (int i = 0; i < 20; ++i) file.tensor_at("w" + std::to_string(i), kF32, {16}, 0);
  file.data(64);
  EXPECT_ERROR(read_gguf(file), Errc::malformed, "tensor \"w1\" shares bytes with tensor \"w0\"");
  EXPECT_HINT(read_gguf(file), "OpenOptions::lenient");
  gguf::ReadOptions options{.lenient = true};
  EXPECT_EQ(read_gguf(file, options).checkpoint.size(), 20u);
  EXPECT_EQ(read_gguf(file, options).checkpoint.notes.size(), 1u);
  options.limits.max_expansion_bytes = 100;
  EXPECT_ERROR(read_gguf(file, options), Errc::limit, "grow beyond the limits");
}

TEST(GgufReader, NotesBytesBehindTheLastTensor) {
  const auto file = read_gguf(GgufBuilder().tensor("w", kF32, {1}).append_data("more"));
  ASSERT_EQ(file.checkpoint.notes.size(), 1u);
  EXPECT_NE(file.checkpoint.notes[0].text.find("4 bytes follow"), std::string::npos);
}

TEST(GgufReader, ListsTypesThatAreNewerThanOurTableAsTheirBytes) {
  const test::GgmlType newer{57, 32, 20};
  const auto file =
      read_gguf(GgufBuilder().tensor("q", newer, {64}).tensor("w", kF32, {2}).tensor("last", newer, {32}));
  EXPECT_EQ(file.checkpoint.at("q").dtype(), DType::u8);
  EXPECT_EQ(file.checkpoint.at("q").shape(), Shape{64});  // 40 bytes, and padding up to the next tensor
  EXPECT_EQ(file.checkpoint.at("last").shape(), Shape{32});
  EXPECT_EQ(file.unknown_types.at("q").id, 57u);
  EXPECT_EQ(file.unknown_types.at("last").shape, Shape{32});
  ASSERT_EQ(file.checkpoint.notes.size(), 1u);
  EXPECT_NE(file.checkpoint.notes[0].text.find("GGML_57"), std::string::npos);
  EXPECT_NE(file.checkpoint.notes[0].text.find("1 more"), std::string::npos);
}

TEST(GgufReader, NamesTheTensorTheByteAndTheFileOfAnError) {
  const GgufBuilder file = GgufBuilder().kv("general.name", "x").tensor_at("w", kF32, {2, 2}, 0).data(8);
  EXPECT_ERROR_AT(read_gguf(file), Errc::malformed, "file.gguf: tensor \"w\" has 16 bytes",
                  GgufBuilder().kv("general.name", "x").header().size());
  EXPECT_HINT(read_gguf(file), "cut short");
}

TEST(GgufReader, ReadsAHeaderThatIsLongerThanItsFirstLook) {
  std::vector<std::string> words;
  for (int i = 0; i < 50'000; ++i) words.push_back("word " + std::to_string(i));
  const auto file = read_gguf(GgufBuilder().strings("tokens", words).kv("after", 7u).tensor("w", kF32, {2}));
  EXPECT_EQ(file.fields.find_uint("after"), 7u);
  EXPECT_EQ(file.fields.find("tokens")->count, 50'000u);
  std::size_t i = 0;
  for (const MetadataValue word : file.fields.find("tokens")->items()) EXPECT_EQ(word.as_string(), words[i++]);
  EXPECT_EQ(i, words.size());
}

TEST(GgufReader, RefusesMoreThanTheLimitsAllow) {
  GgufBuilder file;
  for (int i = 0; i < 5; ++i) file.kv("k" + std::to_string(i), 1u).tensor("t" + std::to_string(i), kF32, {1});
  gguf::ReadOptions options;
  options.limits.max_metadata_keys = 4;
  EXPECT_ERROR(read_gguf(file, options), Errc::limit, "5 keys");
  options.limits = {};
  options.limits.max_tensors = 4;
  EXPECT_ERROR(read_gguf(file, options), Errc::limit, "5 tensors");
  options.limits = {};
  options.limits.max_header_bytes = 100;
  EXPECT_ERROR(read_gguf(file, options), Errc::limit, "more than the 100 bytes");
}

TEST(GgufReader, TakesATensorWithoutBytesBehindPaddingThatNobodyWrote) {
  const auto with_empty_at = [](std::uint64_t offset) {
    return GgufBuilder().tensor_at("w", kF32, {1}, 0).tensor_at("empty", kF32, {0}, offset).data(4);
  };
  EXPECT_EQ(read_gguf(with_empty_at(32)).checkpoint.at("empty").nbytes(), 0u);
  EXPECT_ERROR(read_gguf(with_empty_at(64)), Errc::malformed, "from byte 64 of the data on, but there are 4");
}

}  // namespace
}  // namespace ballast
