#include "cache/record.hpp"

#include <gtest/gtest.h>
#include <ballast/error.hpp>

#include <functional>
#include <string>

#include "cache/tensors.hpp"
#include "core/base64.hpp"
#include "kernels/digest.hpp"
#include "support/expect_error.hpp"
#include "support/tensor_values.hpp"

namespace ballast {
namespace {

// A file may hold any bytes, and anybody can compute a digest.
TEST(CacheRecord, OfAnyBytesIsReadOrRefused) {
  CacheRecord record;
  record.key.version = "1";
  record.key.sources.emplace_back().name = "a";
  record.checkpoint.values.push_back({"epoch", "int", std::int64_t{3}});
  record.checkpoint.files.push_back({path_of_source("target", "a"), 1});
  record.checkpoint.notes.push_back({"a", "odd"});
  RecordedTensor& tensor = record.tensors.emplace_back();
  tensor.name = "w";
  tensor.shape = {2, 3};
  const auto bytes = *from_base64(encode_cache_record(record, "target"));
  const auto sealed = [](std::vector<std::byte> content) {
    const std::uint64_t digest = kernels::xxh3_64(content);
    const auto front = std::as_bytes(std::span(&digest, 1));
    content.insert(content.begin(), front.begin(), front.end());
    return to_base64(content);
  };
  const std::vector<std::byte> content(bytes.begin() + 8, bytes.end());
  EXPECT_EQ(decode_cache_record(sealed(content), "target").tensors.size(), 1u);
  EXPECT_ERROR(decode_cache_record("no base64", "target"), Errc::malformed, "the record");
  EXPECT_ERROR(decode_cache_record(to_base64(content), "target"), Errc::malformed, "the record");
  std::vector<std::byte> other_digest = bytes;
  other_digest[0] ^= std::byte{1};
  EXPECT_ERROR(decode_cache_record(to_base64(other_digest), "target"), Errc::malformed, "the record");
  for (std::size_t size = 0; size < content.size(); ++size) {
    const std::vector<std::byte> part(content.begin(), content.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_ERROR(decode_cache_record(sealed(part), "target"), Errc::malformed, "");
  }
  for (std::size_t i = 0; i < content.size(); ++i) {
    for (const int change : {0x01, 0x7F, 0xFF}) {
      std::vector<std::byte> bad = content;
      bad[i] ^= static_cast<std::byte>(change);
      try {
        static_cast<void>(decode_cache_record(sealed(bad), "target"));
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), Errc::malformed) << i;
      }
    }
  }
}

// Changes what it says into what no version writes.
std::string decoding_of(CacheRecord record, const std::function<void(std::string&)>& change) {
  const auto bytes = *from_base64(encode_cache_record(std::move(record), "folder/target"));
  std::string content(reinterpret_cast<const char*>(bytes.data()) + 8, bytes.size() - 8);
  change(content);
  const std::uint64_t digest = kernels::xxh3_64(std::as_bytes(std::span(content)));
  content.insert(0, reinterpret_cast<const char*>(&digest), sizeof digest);
  const CacheRecord decoded = decode_cache_record(to_base64(std::as_bytes(std::span(content))), "folder/target");
  std::string places;
  for (const Note& note : decoded.checkpoint.notes) places += note.where + " ";
  for (const PlainValue& value : decoded.checkpoint.values) places += std::to_string(value.value.index()) + " ";
  return places;
}
const auto kUnchanged = [](std::string&) {};

TEST(CacheRecord, KnowsNotesByTheFilesThatItHas) {
  CacheRecord record;
  for (const char* name : {"a", "b"}) {
    record.key.sources.emplace_back().name = name;
    record.checkpoint.files.push_back({path_of_source("folder/target", name), 1});
  }
  record.checkpoint.notes = {{"folder/target", "1"}, {"folder/a!/x", "2"}, {"folder/b", "3"}, {"else", "4"}};
  EXPECT_EQ(decoding_of(record, kUnchanged), "folder/target folder/a!/x folder/b else ");
  const auto tell_of_file = [](char number) {
    return [number](std::string& content) {
      content[content.find(
          std::string("\x03\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0"
                      "3",
                      17))] = number;
    };
  };
  EXPECT_EQ(decoding_of(record, tell_of_file(2)), "folder/target folder/a!/x folder/a else ");
  EXPECT_ERROR(decoding_of(record, tell_of_file(4)), Errc::malformed, "the record is not one");
}

TEST(CacheRecord, HasNoValueBehindTheLastOneOfAList) {
  CacheRecord record;
  RecordedTensor& tensor = record.tensors.emplace_back();
  tensor.name = "w";
  tensor.place = RecordedTensor::Place::earlier;
  EXPECT_NO_THROW(decoding_of(record, kUnchanged));
  tensor.place = static_cast<RecordedTensor::Place>(4);
  EXPECT_ERROR(decoding_of(record, kUnchanged), Errc::malformed, "the record is not one");

  CacheRecord other;
  other.checkpoint.values.push_back({"epoch", "kind", std::string("five")});
  EXPECT_EQ(decoding_of(other, kUnchanged), "4 ");
  const auto change_kind = [](std::string& content) { content[content.find("kind") + 4] = 5; };
  EXPECT_ERROR(decoding_of(other, change_kind), Errc::malformed, "the record is not one");
}

TEST(CacheRecord, EndsWithItsLastTensor) {
  EXPECT_ERROR(decoding_of({}, [](std::string& content) { content += '\0'; }), Errc::malformed,
               "the record is not one");
}

TEST(CacheRecord, FitsTheTensorsThatAreStored) {
  StateDict stored;
  stored.insert("w", test::numbers({2, 3}));
  const auto restored = [&](const std::vector<RecordedTensor>& recorded) {
    return from_stored(stored, recorded, nullptr).size();
  };
  using Place = RecordedTensor::Place;
  const RecordedTensor right{.name = "w", .dtype = DType::f32, .shape = {3, 2}};
  EXPECT_EQ(restored({right}), 1u);
  EXPECT_EQ(restored({right, {.name = "v", .dtype = DType::f32, .shape = {6}, .place = Place::earlier}}), 2u);
  const auto expect_refusal = [&](const std::vector<RecordedTensor>& recorded, const char* what) {
    EXPECT_ERROR(restored(recorded), Errc::malformed, what);
  };
  expect_refusal({{.name = "w", .dtype = DType::f32, .shape = {7}}}, "the record does not fit tensor \"w\"");
  expect_refusal({{.name = "w", .dtype = DType::u8, .shape = {23}}}, "the record does not fit tensor \"w\"");
  expect_refusal({{.name = "w", .dtype = DType::u8, .shape = {25}}}, "the record does not fit tensor \"w\"");
  expect_refusal({{.name = "v", .dtype = DType::f32, .shape = {6}}}, "the record does not fit tensor \"v\"");
  expect_refusal({right, {.name = "v", .dtype = DType::f32, .shape = {6}, .place = Place::earlier, .same_as = 1}},
                 "the record does not fit tensor \"v\"");
  expect_refusal({right, {.name = "v", .dtype = DType::f32, .shape = {1ULL << 62, 2}, .place = Place::nowhere}},
                 "the record does not fit tensor \"v\"");
  expect_refusal({right, right}, "the record does not fit the tensors");
  expect_refusal({right, {.name = "w", .dtype = DType::f32, .shape = {6}, .place = Place::earlier}},
                 "the record does not fit the tensors");
  expect_refusal({}, "the record does not fit the tensors");
  stored.insert("t", test::numbers({2, 3}).transpose());
  expect_refusal({right, {.name = "t", .dtype = DType::f32, .shape = {3, 2}}}, "the record does not fit tensor \"t\"");
}

}  // namespace
}  // namespace ballast
