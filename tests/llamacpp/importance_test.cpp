// Importance matrices: what both formats of llama-imatrix say, and every way in which a file can lie.
#include <ballast/importance.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <span>

#include "builders/importance_file.hpp"
#include "builders/temp_dir.hpp"
#include "support/expect_error.hpp"

namespace ballast {
namespace {

using test::importance_fields;
using test::importance_gguf;
using test::ImportanceFile;

std::shared_ptr<const ImportanceMatrix> read_matrix(std::string_view text, const ImportanceOptions& options = {}) {
  const auto bytes = std::as_bytes(std::span(text));
  return ImportanceMatrix::read(memory_source({bytes.begin(), bytes.end()}), options);
}

TEST(ImportanceMatrix, OfTheOlderFormatIsTheMeanOfItsCalls) {
  const auto matrix =
      read_matrix(ImportanceFile().entry("b", 4, {4, 8, 2}).entry("a", 0, {3}).end(6, "text.txt").text());
  EXPECT_EQ(matrix->format(), ImportanceMatrix::Format::legacy);
  EXPECT_EQ(matrix->datasets(), std::vector<std::string>{"text.txt"});
  EXPECT_EQ(matrix->chunks(), 6);
  ASSERT_EQ(matrix->entries().size(), 2);
  EXPECT_EQ(matrix->entries()[0].name, "a");
  EXPECT_EQ(*matrix->find("b")->weights, (std::vector<float>{1, 2, 0.5}));
  EXPECT_EQ(*matrix->find("a")->weights, std::vector<float>{3});
  EXPECT_EQ(matrix->find("c"), nullptr);
}

TEST(ImportanceMatrix, OfTheOlderFormatMayEndAfterItsEntriesOrItsChunks) {
  EXPECT_EQ(read_matrix(ImportanceFile().entry("a", 1, {1}).text())->chunks(), 0);
  const auto matrix = read_matrix(ImportanceFile().entry("a", 1, {1}).raw_end(ImportanceFile::number(9)).text());
  EXPECT_EQ(matrix->chunks(), 9);
  EXPECT_TRUE(matrix->datasets().empty());
}

TEST(ImportanceMatrix, OfAGgufIsDividedByTheCountOfEachExpert) {
  const auto matrix = read_matrix(importance_gguf("w", {2, 4, 9, 9, 6, 3}, {2, 0, 2.6F}).text());
  EXPECT_EQ(matrix->format(), ImportanceMatrix::Format::gguf);
  EXPECT_EQ(matrix->datasets(), (std::vector<std::string>{"text.txt", "more.txt"}));
  EXPECT_EQ(matrix->chunks(), 6);
  EXPECT_EQ(matrix->chunk_size(), 512);
  const ImportanceEntry* const entry = matrix->find("w");
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(entry->columns, 2);
  EXPECT_EQ(entry->matrices, 3);
  EXPECT_EQ(entry->unseen, 1);
  EXPECT_EQ(*entry->weights, (std::vector<float>{1, 2, 1, 1, 2, 1}));
}

TEST(ImportanceMatrix, KeepsWhatTheOptionsInclude) {
  const std::string file =
      ImportanceFile().entry("blk.0.attn_q", 1, {1}).entry("blk.0.ffn_up", 1, {1}).entry("output", 1, {1}).text();
  const auto names = [&](const ImportanceOptions& options) {
    std::vector<std::string> found;
    const auto matrix = read_matrix(file, options);
    for (const ImportanceEntry& entry : matrix->entries()) found.push_back(entry.name);
    return found;
  };
  EXPECT_EQ(names({.include = {"attn", "out"}}), (std::vector<std::string>{"blk.0.attn_q", "output"}));
  EXPECT_EQ(names({.exclude = {"blk."}}), std::vector<std::string>{"output"});
  EXPECT_EQ(names({.include = {"blk."}, .exclude = {"ffn"}}), std::vector<std::string>{"blk.0.attn_q"});
  EXPECT_TRUE(names({.include = {"nothing"}}).empty());
}

TEST(ImportanceMatrix, IsCalledAsItWasOpened) {
  const test::TempDir dir;
  const std::string path = dir.write("imatrix.dat", ImportanceFile().entry("a", 1, {1}).text());
  EXPECT_EQ(ImportanceMatrix::open(path)->file(), path);
  EXPECT_ERROR(ImportanceMatrix::open(dir / "nothing"), Errc::not_found, "nothing");
}

struct Hostile {
  const char* name;
  std::string file;
  std::string message;
};

void PrintTo(const Hostile& hostile, std::ostream* out) { *out << hostile.name; }

class HostileImportance : public testing::TestWithParam<Hostile> {};

TEST_P(HostileImportance, IsRefused) {
  EXPECT_ERROR(read_matrix(GetParam().file), Errc::malformed, GetParam().message);
}

std::string entry_with(std::int32_t name_length, std::int32_t values) {
  return ImportanceFile()
      .raw_entry(ImportanceFile::number(name_length) + "abcd" + ImportanceFile::number(1) +
                 ImportanceFile::number(values) + ImportanceFile::floats({1, 2}))
      .text();
}

constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInfinity = std::numeric_limits<float>::infinity();

INSTANTIATE_TEST_SUITE_P(
    Legacy, HostileImportance,
    testing::ValuesIn(std::vector<Hostile>{
        {"empty", "", "ends inside the number of entries"},
        {"short", "ab", "ends inside the number of entries"},
        {"no_entries", ImportanceFile().text(), "the number of entries is 0"},
        {"negative_entries", ImportanceFile().count(-1).text(), "the number of entries is -1"},
        {"many_entries", ImportanceFile().entry("a", 1, {1}).count(1 << 30).text(),
         "the number of entries is 1073741824"},
        {"one_more_entry", ImportanceFile().entry("a", 1, {1, 2, 3, 4, 5, 6}).count(2).text(), "ends inside"},
        {"no_name", ImportanceFile().entry("", 1, {1, 1}).text(), "the length of a name is 0"},
        {"nul_in_name", ImportanceFile().entry(std::string_view("a\0b", 3), 1, {1}).text(), "names no tensor"},
        {"negative_name", entry_with(-4, 2), "the length of a name is -4"},
        {"long_name", entry_with(1 << 30, 2), "the length of a name is 1073741824"},
        {"no_values", entry_with(4, 0), "the number of values is 0"},
        {"negative_values", entry_with(4, -2), "the number of values is -2"},
        {"many_values", entry_with(4, 0x7FFFFFFF), "the number of values is 2147483647"},
        {"one_value_too_many", entry_with(4, 3), "the number of values is 3, but only 8 bytes follow"},
        {"nan", ImportanceFile().entry("a", 1, {1, kNan}).text(), "a weight of \"a\" is nan"},
        {"infinity", ImportanceFile().entry("a", 1, {kInfinity}).text(), "a weight of \"a\" is inf"},
        {"negative", ImportanceFile().entry("a", 1, {-1}).text(), "a weight of \"a\" is -1"},
        {"twice", ImportanceFile().entry("a", 1, {1}).entry("a", 1, {2}).text(), "tensor \"a\" has two entries"},
        {"cut_chunks", ImportanceFile().entry("a", 1, {1}).raw_end("abc").text(), "ends inside the number of chunks"},
        {"cut_dataset", ImportanceFile().entry("a", 1, {1}).raw_end("abcdabcdx").text(), "length of a data set's name"},
        {"tail", ImportanceFile().entry("a", 1, {1}).end(1, "t").text() + "x", "bytes follow the data set's name"},
    }),
    [](const auto& info) { return info.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Gguf, HostileImportance,
    testing::ValuesIn(std::vector<Hostile>{
        {"no_metadata", test::GgufBuilder().tensor("w", test::kF32, {2}).text(), "without the metadata"},
        {"datasets_are_a_number",
         test::GgufBuilder()
             .kv("imatrix.datasets", 1u)
             .kv("imatrix.chunk_count", 1u)
             .kv("imatrix.chunk_size", 1u)
             .text(),
         "without the metadata"},
        {"no_entries", importance_fields().text(), "without entries"},
        {"other_tensors", importance_fields().tensor("w", test::kF32, {2}).text(), "without entries"},
        {"no_counts", importance_fields().tensor("w.in_sum2", test::kF32, {2}).text(), "\"w\" has no counts"},
        {"no_sums", importance_fields().tensor("w.counts", test::kF32, {2}).text(), "\"w\" has no sums"},
        {"another_type",
         importance_fields().tensor("w.in_sum2", test::kF16, {2}).tensor("w.counts", test::kF32, {1}).text(),
         "must be F32"},
        {"sums_that_do_not_divide",
         importance_fields()
             .tensor_at("w.in_sum2", test::kF32, {3}, 0)
             .tensor_at("w.counts", test::kF32, {2}, 32)
             .data(40)
             .text(),
         "has 3 sums, which do not belong to 2 counts"},
        {"no_values",
         importance_fields()
             .tensor_at("w.in_sum2", test::kF32, {0}, 0)
             .tensor_at("w.counts", test::kF32, {0}, 0)
             .data(8)
             .text(),
         "has 0 sums"},
        {"nan", importance_gguf("w", {1, kNan}, {1}).text(), "a sum of \"w\" is nan"},
        {"negative", importance_gguf("w", {1, -2}, {1}).text(), "a sum of \"w\" is -2"},
        {"negative_count", importance_gguf("w", {1, 2}, {-1}).text(), "a count of \"w\" is -1"},
        {"infinite_count", importance_gguf("w", {1, 2}, {kInfinity}).text(), "a count of \"w\" is inf"},
        {"cut", importance_gguf("w", {1, 2}, {1}).text().substr(0, 40), "bytes follow"},
    }),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace ballast
