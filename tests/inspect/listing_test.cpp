// Which tensors are listed, in which order, and how much they are together.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <ballast/listing.hpp>

#include "builders/safetensors_file.hpp"

namespace ballast {
namespace {

using test::SafetensorsFile;
using Names = std::vector<std::string>;

Names listed(const Checkpoint& checkpoint, const ListOptions& options) {
  Names names;
  for (const std::size_t number : list_tensors(checkpoint, options))
    names.emplace_back(checkpoint.tensors[number].name);
  return names;
}

Checkpoint some_tensors() {
  return SafetensorsFile()
      .tensor("l.10", "F32", {2, 2})  // 4 elements, 16 bytes
      .tensor("l.9", "F32", {4})
      .tensor("b", "BF16", {9})    // 18 bytes
      .tensor("a", "I64", {1})     // 8 bytes
      .tensor("c", "U8", {3, 10})  // 30 elements
      .open();
}

TEST(Listing, KeepsTheOrderOfTheCheckpointUnlessItIsSorted) {
  EXPECT_EQ(listed(some_tensors(), {}), (Names{"l.10", "l.9", "b", "a", "c"}));
  EXPECT_EQ(listed(some_tensors(), {.reverse = true}), (Names{"c", "a", "b", "l.9", "l.10"}));
  EXPECT_TRUE(listed({}, {.sort = SortBy::bytes, .top = 3}).empty());
}

TEST(Listing, SortsByEveryKeyWithTiesInTheOrderOfNames) {
  const Checkpoint checkpoint = some_tensors();
  EXPECT_EQ(listed(checkpoint, {.sort = SortBy::name}), (Names{"a", "b", "c", "l.9", "l.10"}));
  EXPECT_EQ(listed(checkpoint, {.sort = SortBy::bytes}), (Names{"c", "b", "l.9", "l.10", "a"}));
  EXPECT_EQ(listed(checkpoint, {.sort = SortBy::numel}), (Names{"c", "b", "l.9", "l.10", "a"}));
  EXPECT_EQ(listed(checkpoint, {.sort = SortBy::dtype}), (Names{"b", "l.9", "l.10", "a", "c"}));
  EXPECT_EQ(listed(checkpoint, {.sort = SortBy::shape}), (Names{"a", "l.10", "c", "l.9", "b"}));
  EXPECT_EQ(listed(checkpoint, {.sort = SortBy::file}), (Names{"a", "b", "c", "l.9", "l.10"}));
}

TEST(Listing, ReversesTheKeysAndNotTheTies) {
  const Checkpoint checkpoint = some_tensors();
  EXPECT_EQ(listed(checkpoint, {.sort = SortBy::name, .reverse = true}), (Names{"l.10", "l.9", "c", "b", "a"}));
  EXPECT_EQ(listed(checkpoint, {.sort = SortBy::bytes, .reverse = true}), (Names{"a", "l.9", "l.10", "b", "c"}));
}

TEST(Listing, GivesTheLargestFirstIfOnlySomeAreWanted) {
  const Checkpoint checkpoint = some_tensors();
  EXPECT_EQ(listed(checkpoint, {.top = 2}), (Names{"c", "b"}));
  EXPECT_EQ(listed(checkpoint, {.sort = SortBy::name, .top = 1}), Names{"a"});
  EXPECT_EQ(listed(checkpoint, {.top = 99}).size(), 5u);
}

TEST(Listing, FiltersByDtypeAndBytes) {
  const Checkpoint checkpoint = some_tensors();
  EXPECT_EQ(listed(checkpoint, {.dtypes = {"F32", "U8"}}), (Names{"l.10", "l.9", "c"}));
  EXPECT_EQ(listed(checkpoint, {.min_bytes = 16, .max_bytes = 18}), (Names{"l.10", "l.9", "b"}));
  EXPECT_EQ(listed(checkpoint, {.dtypes = {"F32"}, .max_bytes = 20, .sort = SortBy::name, .top = 1}), Names{"l.9"});
  EXPECT_TRUE(listed(checkpoint, {.min_bytes = 19, .max_bytes = 18}).empty());
}

TEST(Listing, TellsATypeOfGgmlThatItDoesNotKnowFromBytes) {
  Checkpoint checkpoint = SafetensorsFile().tensor("new", "U8", {64}).tensor("old", "U8", {64}).open();
  checkpoint.unknown_ggml["new"] = {99, {4, 32}};
  EXPECT_EQ(describe_tensor(checkpoint, 0).dtype, "GGML_99");
  EXPECT_EQ(describe_tensor(checkpoint, 0).numel(), 128u);
  EXPECT_EQ(listed(checkpoint, {.dtypes = {"U8"}}), Names{"old"});
  EXPECT_EQ(listed(checkpoint, {.dtypes = {"GGML_99"}}), Names{"new"});
}

TEST(Listing, ReadsDtypesAsPeopleWriteThem) {
  EXPECT_EQ(parse_listed_dtype("bf16"), "BF16");
  EXPECT_EQ(parse_listed_dtype("torch.float16"), "F16");
  EXPECT_EQ(parse_listed_dtype("q4_k"), "Q4_K");
  EXPECT_EQ(parse_listed_dtype("ggml_99"), "GGML_99");
  for (const char* text : {"", "F33", "GGML_", "GGML_x", "GGML", "BF16,F16"})
    EXPECT_EQ(parse_listed_dtype(text), std::nullopt) << text;
}

TEST(Listing, AddsUpSharedBytesOnce) {
  const Checkpoint checkpoint =
      SafetensorsFile().metadata({{"head", "emb"}}).tensor("emb", "F32", {4}).tensor("w", "U8", {3}).open();
  const TensorTotals all = add_up(checkpoint);
  EXPECT_EQ(all.tensors, 3u);
  EXPECT_EQ(all.parameters, 7u);
  EXPECT_EQ(all.bytes, 19u);
  const std::vector<std::size_t> head = {2};
  EXPECT_EQ(add_up(checkpoint, head).bytes, 16u) << "an alias alone is not repeated";
  EXPECT_EQ(add_up({}).bytes, 0u);
}

TEST(Listing, TakesAWordThatIsNoNameAsAPartOfNames) {
  const Checkpoint checkpoint = SafetensorsFile().tensor("a.norm.w", "U8", {1}).tensor("norm", "U8", {1}).open();
  EXPECT_EQ(glob_of_part(checkpoint, "orm"), "*orm*");
  EXPECT_EQ(glob_of_part(checkpoint, "norm"), std::nullopt) << "a name";
  EXPECT_EQ(glob_of_part(checkpoint, "*orm"), std::nullopt) << "a glob";
  EXPECT_EQ(glob_of_part(checkpoint, "nrom"), std::nullopt) << "no part";
  EXPECT_EQ(glob_of_part(checkpoint, ""), std::nullopt);
}

}  // namespace
}  // namespace ballast
