#include "formats/gguf/split.hpp"

#include <gtest/gtest.h>

#include <filesystem>

#include "builders/temp_dir.hpp"
#include "read_bytes.hpp"
#include "support/expect_error.hpp"
#include "support/vectors.hpp"

namespace ballast {
namespace {

using test::GgufBuilder;
using test::kF32;
using test::TempDir;

GgufBuilder part(std::uint16_t number, std::uint16_t count, std::int32_t tensors) {
  GgufBuilder file;
  if (number == 0) file.kv("general.name", "whole");
  file.kv_raw("split.no", test::kU16, file.number(number)).kv_raw("split.count", test::kU16, file.number(count));
  file.kv_raw("split.tensors.count", test::kI32, file.number(tensors));
  return file.tensor("t" + std::to_string(number), kF32, {4});
}

TEST(GgufSplit, ReadsAndMakesTheNamesOfParts) {
  const auto name = gguf::parse_part_name("a/b-00002-of-00012.gguf");
  ASSERT_TRUE(name);
  EXPECT_EQ(name->stem, "a/b");
  EXPECT_EQ(name->number, 2u);
  EXPECT_EQ(name->count, 12u);
  for (const char* other : {"b.gguf", "b-0002-of-00012.gguf", "b-00002-of-00001.gguf", "b-00000-of-00001.gguf",
                            "b-00001-of-00002.safetensors", "b-x0001-of-00002.gguf", "00001-of-00002.gguf", ""})
    EXPECT_FALSE(gguf::parse_part_name(other)) << other;
}

TEST(GgufSplit, OpensTheWholeSetFromAnyPart) {
  const TempDir dir;
  for (std::uint16_t i = 0; i < 3; ++i) dir.write(test::part_path("m", i + 1u, 3), part(i, 3, 3).text());
  for (std::uint64_t i = 1; i <= 3; ++i) {
    const auto file = test::open_set(test::part_path(dir / "m", i, 3));
    EXPECT_EQ(file.checkpoint.size(), 3u);
    EXPECT_EQ(file.checkpoint.tensors[2].name, "t2");
    EXPECT_EQ(file.checkpoint.shards, 3u);
    EXPECT_EQ(file.checkpoint.files.size(), 3u);
    EXPECT_EQ(file.fields.size(), 1u);
    EXPECT_FALSE(file.split);
  }
}

TEST(GgufSplit, OpensAFileThatIsNotAPartAsItIs) {
  const TempDir dir;
  const std::string path = dir.write("m.gguf", GgufBuilder().kv("k", 1u).tensor("w", kF32, {1}).text());
  EXPECT_EQ(test::open_set(path).checkpoint.size(), 1u);
  GgufBuilder joined;
  joined.kv_raw("split.count", test::kU16, joined.number(std::uint16_t{0}));  // as gguf-split --merge leaves it
  EXPECT_FALSE(test::open_set(dir.write("joined.gguf", joined.text())).split);
  EXPECT_EQ(test::open_set(dir.write("one.gguf", part(0, 1, 1).text())).checkpoint.size(), 1u);
}

TEST(GgufSplit, NamesThePartThatIsMissing) {
  const TempDir dir;
  const std::string path = dir.write("m-00001-of-00003.gguf", part(0, 3, 3).text());
  dir.write("m-00003-of-00003.gguf", part(2, 3, 3).text());
  EXPECT_ERROR(test::open_set(path), Errc::not_found, "m-00002-of-00003.gguf: part 2 of 3 is missing");
}

TEST(GgufSplit, DoesNotCallAPartMissingThatIsThere) {
  const TempDir dir;
  const std::string path = dir.write("m-00001-of-00002.gguf", part(0, 2, 2).text());
  std::filesystem::create_directory(dir / "m-00002-of-00002.gguf");
  const auto error = test::error_of([&] { test::open_set(path); });
  ASSERT_TRUE(error);
  EXPECT_NE(error->code(), Errc::not_found) << error->what();
}

TEST(GgufSplit, RefusesPartsThatContradictTheirNames) {
  const TempDir dir;
  const std::string path = dir.write("m-00001-of-00002.gguf", part(1, 2, 2).text());
  dir.write("m-00002-of-00002.gguf", part(0, 2, 2).text());
  EXPECT_ERROR(test::open_set(path), Errc::malformed, "a file called part 1 of 2 says that it is part 2 of 2");
  dir.write("m-00001-of-00002.gguf", GgufBuilder().tensor("w", kF32, {1}).text());
  EXPECT_ERROR(test::open_set(path), Errc::malformed, "says that it is not a part");
  for (const std::uint16_t other : {std::uint16_t{3}, std::uint16_t{9}}) {
    dir.write("m-00001-of-00002.gguf", part(0, other, 2).text());
    EXPECT_ERROR(test::open_set(path), Errc::malformed,
                 "called part 1 of 2 says that it is part 1 of " + std::to_string(other));
  }
  const std::string renamed = dir.write("renamed.gguf", part(1, 2, 2).text());
  EXPECT_ERROR(test::open_set(renamed), Errc::not_found, "this is part 2 of 2");
}

TEST(GgufSplit, RefusesPartsThatDoNotMakeAWhole) {
  const TempDir dir;
  const std::string path = dir.write("m-00001-of-00002.gguf", part(0, 2, 3).text());
  dir.write("m-00002-of-00002.gguf", part(1, 2, 3).text());
  EXPECT_ERROR(test::open_set(path), Errc::malformed, "2 tensors together, and say that they have 3");
  dir.write("m-00001-of-00002.gguf", part(0, 2, 2).tensor("t1", kF32, {1}).text());
  EXPECT_ERROR(test::open_set(path), Errc::malformed, "tensor \"t1\" is in two parts");
}

TEST(GgufSplit, RefusesMorePartsThanTheLimitsAllow) {
  const TempDir dir;
  gguf::ReadOptions options;
  options.limits.max_shards = 2;
  const std::string path = dir.write("m-00001-of-00003.gguf", part(0, 3, 3).text());
  EXPECT_ERROR(test::open_set(path, options), Errc::limit, "3 parts");
  EXPECT_EQ(gguf::set_of("m-00001-of-00002.gguf", options.limits).size(), 2u);
}

TEST(GgufSplit, HasNoMorePartsAndTensorsThanItsKeysCanHold) {
  constexpr std::uint64_t kParts = 0xFFFF, kTensors = 0x7FFFFFFF;
  EXPECT_EQ(gguf::fields_of_part({}, 0, kParts, kTensors).find_uint("split.count"), kParts);
  EXPECT_ERROR(gguf::fields_of_part({}, 0, kParts + 1, 1), Errc::unsupported, "65536 parts with 1 tensors");
  EXPECT_ERROR(gguf::fields_of_part({}, 0, 1, kTensors + 1), Errc::unsupported, "1 parts with 2147483648 tensors");
}

TEST(GgufSplit, SaysWhatToDoAboutPiecesThatAreNotGgufFiles) {
  EXPECT_EQ(gguf::raw_split_hint("d/m.gguf.part1of2"), "join the pieces first: cat m.gguf.part{1..2}of2 > m.gguf");
  EXPECT_EQ(gguf::raw_split_hint("m.gguf-split-b"), "join the pieces first: cat m.gguf-split-* > m.gguf");
  for (const char* other : {"m.gguf",
                            "m-00001-of-00002.gguf",
                            "m.gguf.part",
                            "split-a",
                            "m.bin.part1of2",
                            "of2",
                            "2",
                            "-split-a",
                            "xsplit-a",
                            "",
                            "m.gguf.part1if2",
                            "m.gguf.partof2",
                            "m.gguf.cart1of2",
                            "m.gguf-spliT-b",
                            "m.gguf_split-b",
                            "part1of2",
                            "m.gguf-1of2",
                            "m.gguf.part12",
                            "m.gguf.1part2",
                            "m.gguf-b",
                            "a"})
    EXPECT_FALSE(gguf::raw_split_hint(other)) << other;

  const std::string whole = GgufBuilder().tensor("w", kF32, {100}).text();
  const auto piece = test::source_of(whole.substr(0, whole.size() / 2), "m.gguf.part1of2");
  EXPECT_ERROR(gguf::read(piece), Errc::unsupported, "a piece of a file that was cut into pieces: tensor \"w\"");
  EXPECT_HINT(gguf::read(piece), "cat m.gguf.part{1..2}of2 > m.gguf");
}

TEST(GgufSplit, ReadsTheSetsOfGgufPy) {
  for (const char* name : {"split_by_tensors", "split_small_first"}) {
    const std::string prefix = test::vector_path("gguf") + "/" + name;
    const auto file = test::open_set(test::part_path(prefix, 2, 3));
    EXPECT_EQ(file.checkpoint.size(), 7u);
    EXPECT_EQ(file.checkpoint.tensors[6].name, "blk.6.attn_q.weight");
    EXPECT_EQ(file.fields.find_string("general.name"), "tiny");
    EXPECT_FALSE(file.fields.contains("split.count"));
  }
}

}  // namespace
}  // namespace ballast
