// Files that must be read, however odd they look.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <random>
#include <string>

#include <ballast/open.hpp>

#include "builders/safetensors_file.hpp"
#include "formats/safetensors/header.hpp"
#include "support/expect_error.hpp"
#include "support/tensor_values.hpp"

namespace ballast {
namespace {

using test::names_of;
using test::SafetensorsFile;
using test::text_of;

using Names = std::vector<std::string>;

TEST(SafetensorsReader, ReadsNoTensorsAtAll) {
  for (const char* header : {"{}", "{}      ", "{ \n\t\r }", R"({"__metadata__":{}})", R"({"__metadata__":null})"}) {
    const Checkpoint checkpoint = SafetensorsFile(header).open();
    EXPECT_EQ(checkpoint.size(), 0u) << header;
    EXPECT_TRUE(checkpoint.metadata.empty() && checkpoint.notes.empty()) << header;
  }
}

TEST(SafetensorsReader, DescribesEveryTensorAndTheFile) {
  const auto file = SafetensorsFile().metadata({{"format", "pt"}}).values<float>("w", "F32", {2, 2}, {1, 2, 3, 4});
  const Checkpoint checkpoint = file.open();
  EXPECT_EQ(checkpoint.metadata, (Metadata{{"format", "pt"}}));
  EXPECT_EQ(checkpoint.format, Format::safetensors);
  EXPECT_EQ(checkpoint.shards, 1u);
  ASSERT_EQ(checkpoint.files.size(), 1u);
  EXPECT_EQ(checkpoint.files[0].bytes, file.text().size());
  const Tensor& w = checkpoint.at("w");
  EXPECT_EQ(w.dtype(), DType::f32);
  EXPECT_EQ(w.shape(), (Shape{2, 2}));
  EXPECT_EQ(test::values_of<float>(w), (std::vector<float>{1, 2, 3, 4}));
}

TEST(SafetensorsReader, KnowsWhereATensorLiesInItsFile) {
  const test::TempDir folder;
  const auto file = SafetensorsFile().tensor("a", "U8", {3}).tensor("b", "U8", {5});
  const Checkpoint checkpoint = open(file.write(folder, "x.safetensors"));
  const auto place = checkpoint.at("b").storage()->location();
  ASSERT_TRUE(place);
  EXPECT_EQ(place->file, folder / "x.safetensors");
  EXPECT_EQ(place->offset + checkpoint.at("b").offset(), 8 + file.header().size() + 3);
}

TEST(SafetensorsReader, ListsTensorsByOffsetWhateverTheOrderOfTheHeader) {
  const auto file = SafetensorsFile()
                        .tensor("c", "U8", {2}, 6, 8)
                        .tensor("a", "U8", {4}, 2, 6)
                        .tensor("b", "U8", {2}, 0, 2)
                        .data("bbaaaacc");
  const Checkpoint checkpoint = file.open();
  EXPECT_EQ(names_of(checkpoint), (Names{"b", "a", "c"}));
  EXPECT_EQ(text_of(checkpoint.at("a")), "aaaa");
  EXPECT_EQ(text_of(checkpoint.at("c")), "cc");
}

TEST(SafetensorsReader, PutsAnyOrderOfManyTensorsRight) {
  std::mt19937 random(5);
  for (std::size_t count = 1; count < 60; ++count) {
    std::vector<std::size_t> order(count);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::shuffle(order.begin(), order.end(), random);
    SafetensorsFile file;
    std::string data;
    for (std::size_t i = 0; i < count; ++i) data += static_cast<char>('A' + i);
    for (const std::size_t i : order) file.tensor("t" + std::to_string(i), "U8", {1}, i, i + 1);
    const Checkpoint checkpoint = file.data(data).open();
    ASSERT_EQ(checkpoint.size(), count);
    for (std::size_t i = 0; i < count; ++i) {
      EXPECT_EQ(checkpoint.tensors[i].name, "t" + std::to_string(i));
      EXPECT_EQ(text_of(checkpoint.tensors[i].tensor), data.substr(i, 1));
    }
  }
}

// An empty tensor may lie at the beginning, at the end, or between any two tensors, and anywhere in the header.
TEST(SafetensorsReader, ReadsEmptyTensorsInEveryOrder) {
  struct Item {
    const char* name;
    std::uint64_t begin, end;
  };
  std::vector<Item> items = {{"e0", 0, 0}, {"a", 0, 4}, {"e4", 4, 4}, {"f4", 4, 4}, {"b", 4, 8}, {"e8", 8, 8}};
  std::sort(items.begin(), items.end(), [](const Item& a, const Item& b) { return std::string(a.name) < b.name; });
  do {
    SafetensorsFile file;
    for (const Item& item : items) file.tensor(item.name, "U8", {item.end - item.begin}, item.begin, item.end);
    const Checkpoint checkpoint = file.data("aaaabbbb").open();
    const Names names = names_of(checkpoint);
    ASSERT_EQ(names.size(), 6u);
    EXPECT_EQ(names.front(), "e0");
    EXPECT_EQ(names.back(), "e8");
    EXPECT_EQ(text_of(checkpoint.at("b")), "bbbb");
    EXPECT_EQ(text_of(checkpoint.at("f4")), "");
  } while (std::next_permutation(items.begin(), items.end(),
                                 [](const Item& a, const Item& b) { return std::string(a.name) < b.name; }));
}

TEST(SafetensorsReader, ReadsEmptyTensorsOfAbsurdShapes) {
  const Checkpoint checkpoint = SafetensorsFile().tensor("w", "F64", {0, UINT64_MAX, UINT64_MAX}, 0, 0).open();
  EXPECT_EQ(checkpoint.at("w").numel(), 0u);
  EXPECT_EQ(checkpoint.at("w").shape(), (Shape{0, UINT64_MAX, UINT64_MAX}));
}

TEST(SafetensorsReader, ReadsScalarsAndEveryRankUpToTheLimit) {
  SafetensorsFile file;
  for (std::size_t rank = 0; rank <= 64; ++rank)
    file.tensor("r" + std::to_string(rank), "I16", std::vector<std::uint64_t>(rank, 1));
  const Checkpoint checkpoint = file.open();
  for (std::size_t rank = 0; rank <= 64; ++rank) {
    const Tensor& tensor = checkpoint.at("r" + std::to_string(rank));
    EXPECT_EQ(tensor.rank(), rank);
    EXPECT_EQ(tensor.nbytes(), 2u);
  }
}

TEST(SafetensorsReader, ReadsEveryDtypeOfTheFormat) {
  SafetensorsFile file;
  std::size_t count = 0;
  for (const DTypeInfo& type : all_dtypes()) {
    if (!type.in_safetensors) continue;
    file.tensor("t." + std::string(type.name), type.name, {3, 8});
    ++count;
  }
  EXPECT_EQ(count, 22u);
  const Checkpoint checkpoint = file.open();
  ASSERT_EQ(checkpoint.size(), count);
  for (const auto& [name, tensor] : checkpoint) {
    EXPECT_EQ("t." + std::string(ballast::name(tensor.dtype())), name);
    EXPECT_EQ(tensor.nbytes(), bytes_of(tensor.dtype(), 24)) << name;
  }
  EXPECT_EQ(checkpoint.at("t.F4").nbytes(), 12u);
  EXPECT_EQ(checkpoint.at("t.F6_E3M2").nbytes(), 18u);
}

TEST(SafetensorsReader, ReadsDataThatAreNotAligned) {
  for (std::size_t padding = 0; padding < 16; ++padding) {
    auto file = SafetensorsFile().values<double>("w", "F64", {2}, {1.5, -2.5});
    const Checkpoint checkpoint = file.pad_header_to(file.header().size() + padding).open();
    const Tensor& w = checkpoint.at("w");
    EXPECT_EQ(test::values_of<double>(w), (std::vector<double>{1.5, -2.5}));
    const auto aligned = w.aligned();
    EXPECT_EQ(aligned.as<double>()[1], -2.5);
  }
}

TEST(SafetensorsReader, ReadsNamesWithEscapes) {
  const Checkpoint checkpoint = SafetensorsFile()
                                    .tensor(R"(q\"b\\s\/ \b\f\n\r\t)", "U8", {1})
                                    .tensor(R"(\u0000\u00e9\u4e2d\uD83D\uDE00)", "U8", {1})
                                    .tensor("\xC3\xA9", "U8", {1})
                                    .tensor("", "U8", {1})
                                    .open();
  using namespace std::string_literals;
  EXPECT_EQ(names_of(checkpoint), (Names{"q\"b\\s/ \b\f\n\r\t", "\0\u00e9\u4e2d\U0001F600"s, "\xC3\xA9", ""}));
  EXPECT_EQ(checkpoint.at("\0\u00e9\u4e2d\U0001F600"s).numel(), 1u);
}

// Names with escapes are decoded one after the other: no name may be overwritten by the next.
TEST(SafetensorsReader, KeepsAThousandNamesWithEscapes) {
  SafetensorsFile file;
  for (int i = 0; i < 1000; ++i) file.tensor("\\u0041" + std::to_string(i), "U8", {1});
  const Checkpoint copy = Checkpoint(file.open());
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(copy.contains("A" + std::to_string(i))) << i;
}

TEST(SafetensorsReader, ReadsWhatOtherWritersPutInTheHeader) {
  const char* const headers[] = {
      R"( { "w" : { "dtype" : "F32" , "shape" : [ 1 ] , "data_offsets" : [ 0 , 4 ] } } )",
      R"({
        "w": {
          "dtype": "F32",
          "shape": [
            1
          ],
          "data_offsets": [0, 4]
        }
      }
      )",
      R"({"w":{"data_offsets":[0,4],"shape":[1],"dtype":"F32"}})",
      R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":null}})",
      R"({"w":{"x":{"a":[1,-2.5e-3,true,false,null,"\u0041"],"b":{}},"y":[],"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
      R"({"w":{"x":[[[[[[]]]]]],"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
      R"({"w":{"x":{"k":1,"l":{"k":1}},"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
      R"({"w":{"x":[18446744073709551615,-9223372036854775808,1e307,1e-999,-0,0.0],"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
      R"({"w":{"dtype":"\u004632","shape":[1],"data_offsets":[0,4]}})",
      R"({"w":{"\u0064type":"F32","shape":[1],"data_offsets":[0,4]}})",
  };
  for (const char* header : headers) {
    const auto open = [&] { return SafetensorsFile(header).data(4).open(); };
    ASSERT_NO_THROW(open()) << header;
    EXPECT_EQ(open().at("w").shape(), Shape{1}) << header;
  }
}

TEST(SafetensorsReader, ReadsMetadataAnywhereInTheHeader) {
  EXPECT_EQ(SafetensorsFile().tensor("w", "U8", {1}).metadata({{"a", "1"}}).tensor("v", "U8", {1}).open().metadata,
            (Metadata{{"a", "1"}}));
  EXPECT_EQ(SafetensorsFile(R"({"__metadat\u0061__":{"\u0061":"\u0000"}})").open().metadata,
            (Metadata{{"a", std::string(1, '\0')}}));
  EXPECT_EQ(SafetensorsFile().metadata({{"__metadata__", "x"}, {"", ""}}).open().metadata,
            (Metadata{{"__metadata__", "x"}, {"", ""}}));
}

TEST(SafetensorsReader, NotesSpacesBeforeTheHeader) {
  for (const char* space : {" ", "\n\n", "\t \r\n"}) {
    const Checkpoint checkpoint = SafetensorsFile(space + std::string("{}")).open();
    ASSERT_EQ(checkpoint.notes.size(), 1u);
    EXPECT_EQ(checkpoint.notes[0].where, "file");
    EXPECT_EQ(checkpoint.notes[0].text, "the header begins with spaces");
  }
}

TEST(SafetensorsReader, ForgivesBytesAtTheEndOnlyWhenLenientAndSaysSo) {
  const auto file = SafetensorsFile().tensor("w", "U8", {2}).data("wwjunk");
  OpenOptions lenient;
  lenient.lenient = true;
  const Checkpoint checkpoint = file.open(lenient);
  EXPECT_EQ(text_of(checkpoint.at("w")), "ww");
  ASSERT_EQ(checkpoint.notes.size(), 1u);
  EXPECT_EQ(checkpoint.notes[0].text, "4 bytes follow the last tensor; passed over");
  EXPECT_TRUE(SafetensorsFile().tensor("w", "U8", {2}).open(lenient).notes.empty());
}

TEST(SafetensorsReader, ForgivesNothingElseWhenLenient) {
  OpenOptions lenient;
  lenient.lenient = true;
  EXPECT_ERROR(SafetensorsFile().tensor("w", "U8", {4}).data(3).open(lenient), Errc::malformed, "ends at byte 4");
  EXPECT_ERROR(SafetensorsFile().tensor("w", "U8", {2}, 2, 4).data(4).open(lenient), Errc::malformed,
               "begins at byte 2");
  EXPECT_ERROR(SafetensorsFile(R"({"w":1,"w":1})").open(lenient), Errc::malformed, "");
}

TEST(SafetensorsReader, ReadsNothingButTheHeader) {
  const test::TempDir folder;
  const std::string path =
      SafetensorsFile().tensor("w", "U8", {1ull << 40}, 0, 1ull << 40).write(folder, "sparse.safetensors");
  std::filesystem::resize_file(path, std::filesystem::file_size(path) + (1ull << 40));
  const Checkpoint checkpoint = open(path);
  EXPECT_EQ(checkpoint.at("w").nbytes(), 1ull << 40);
  std::byte last;
  checkpoint.at("w").read((1ull << 40) - 1, {&last, 1});
  EXPECT_EQ(last, std::byte{0});
}

// The text that parse_header keeps must live as long as a tensor's name does.
TEST(SafetensorsReader, KeepsNamesThatOutliveTheirCheckpoint) {
  StateDict kept;
  { kept = SafetensorsFile().tensor("a\\u0062c", "U8", {1}).tensor("plain", "U8", {1}).open().tensors; }
  EXPECT_EQ(kept[0].name, "abc");
  EXPECT_EQ(kept[1].name, "plain");
}

TEST(SafetensorsHeader, KnowsWhereItsMetadataLie) {
  const std::string text = R"( {"w":{"dtype":"U8","shape":[],"data_offsets":[0,1]} , "__metadata__" : {"a" : "b"} } )";
  const auto parsed = safetensors::parse_header(std::make_shared<PaddedText>(text), meta_storage(1), {});
  EXPECT_EQ(text.substr(parsed.metadata_text.begin, parsed.metadata_text.end - parsed.metadata_text.begin),
            R"("__metadata__" : {"a" : "b"})");
  EXPECT_TRUE(parsed.leading_space);
  EXPECT_EQ(parsed.data_end, 1u);
}

// Numbers are read eight digits at a time: the test has every length, and every neighbour of a power of ten.
TEST(SafetensorsHeader, ReadsIntegersOfEveryLength) {
  const auto check = [](std::uint64_t dim) {
    const auto open = SafetensorsFile().tensor("w", "U8", {0, dim}, 0, 0).open();
    EXPECT_EQ(open.at("w").shape()[1], dim);
  };
  std::uint64_t power = 1;
  for (int digits = 1; digits <= 20; ++digits, power *= 10) {
    for (const std::uint64_t near : {power - 1, power, power + 1, power * 9 + 8}) check(near);
    if (digits == 20) break;
  }
  std::mt19937_64 random(7);
  for (int i = 0; i < 2000; ++i) check(random() >> (random() % 64));
  check(UINT64_MAX);
}

}  // namespace
}  // namespace ballast
