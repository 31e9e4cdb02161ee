// Compressed tensors kept inside safetensors by agreement, and back.
#include "checkpoint/agreements/compressed.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <random>

#include <ballast/hash.hpp>
#include <ballast/open.hpp>
#include <ballast/save.hpp>
#include <ballast/summary.hpp>

#include "builders/temp_dir.hpp"
#include "builders/torch_file.hpp"
#include "support/expect_error.hpp"
#include "support/fake_storages.hpp"

namespace ballast {
namespace {

constexpr const char* kCompressedKey = "ballast.compressed";

std::vector<std::byte> shrinking_bytes(std::size_t size) {
  std::mt19937 random(static_cast<unsigned>(size));
  std::vector<std::byte> bytes(size);
  for (std::byte& b : bytes) b = static_cast<std::byte>(std::countr_zero(random() | 0x80000000u));
  return bytes;
}

Tensor shrinking(DType dtype, Shape shape) {
  const std::uint64_t size = bytes_of(dtype, shape.numel().value()).value();
  return Tensor::from_bytes(dtype, std::move(shape), shrinking_bytes(size));
}

Checkpoint of(std::vector<std::pair<std::string, Tensor>> tensors) {
  Checkpoint checkpoint;
  for (auto& [name, tensor] : tensors) checkpoint.tensors.insert(name, std::move(tensor));
  return checkpoint;
}

Checkpoint one(DType dtype = DType::bf16, Shape shape = Shape{300, 1000}) {
  return of({{"w", shrinking(dtype, std::move(shape))}});
}

void expect_same_tensors(const Checkpoint& a, const Checkpoint& b) {
  EXPECT_EQ(hash(a).digest, hash(b).digest);
  EXPECT_EQ(a.metadata, b.metadata);
  EXPECT_TRUE(a.notes.empty());
}

TEST(Compressed, ComesBackAsItWasInEveryDtype) {
  for (const DTypeInfo& type : all_dtypes()) {
    if (!type.in_safetensors) continue;
    const Checkpoint checkpoint = one(type.dtype, Shape{3, 7, 40'000});
    const Checkpoint folded = fold_compressed(checkpoint, {});
    EXPECT_EQ(folded.at("w").dtype(), DType::u8) << type.name;
    EXPECT_EQ(folded.at("w").rank(), 1u);
    EXPECT_LT(folded.at("w").nbytes(), checkpoint.at("w").nbytes());
    expect_same_tensors(unfold_compressed(folded, {}), checkpoint);
  }
}

TEST(Compressed, CountsAsNoWaste) {
  const test::TempDir folder;
  save(one(), folder / "m.safetensors", {.compress = true, .durable = false});
  EXPECT_EQ(summarize(open(folder / "m.safetensors")).wasted_bytes, 0u);
}

TEST(Compressed, SaysWhatItDidInTheMetadata) {
  EXPECT_EQ(fold_compressed(one(), {}).metadata.at(kCompressedKey),
            R"({"version":1,"tensors":{"w":{"dtype":"BF16","shape":[300,1000]}}})");
}

TEST(Compressed, LeavesWhatIsSmallEmptyRepeatedWithoutDataOrNoSmaller) {
  const std::uint64_t huge = std::uint64_t{1} << 58;
  const Checkpoint checkpoint =
      of({{"small", shrinking(DType::f32, {100})},
          {"scalar", shrinking(DType::f32, Shape{})},
          {"empty", shrinking(DType::f32, {0, 5})},
          {"meta", Tensor(DType::f32, {100'000}, meta_storage(400'000))},
          {"random", Tensor::from_bytes(DType::u8, {200'000}, test::some_bytes(200'000, 1))},
          {"repeated", Tensor(DType::f32, {huge}, Strides{0}, memory_storage(shrinking_bytes(4)))},
          {"blocks", shrinking(DType::q8_0, {320'000})},
          {"complex", shrinking(DType::c128, {100'000})}});
  const Checkpoint folded = fold_compressed(checkpoint, {});
  EXPECT_FALSE(folded.metadata.contains(kCompressedKey));
  for (const auto& [name, tensor] : checkpoint) {
    EXPECT_EQ(folded.at(name).dtype(), tensor.dtype()) << name;
    EXPECT_EQ(folded.at(name).storage(), tensor.storage()) << name;
  }
}

TEST(Compressed, TakesStridedTensorsAndStreams) {
  const auto bytes = shrinking_bytes(1'500'000);
  const auto stream = std::make_shared<test::DeflatedStorage>(bytes);
  const Checkpoint checkpoint = of({{"turned", shrinking(DType::bf16, {700, 900}).transpose()},
                                    {"second", Tensor(DType::u8, {500'000}, stream, 1'000'000)},
                                    {"first", Tensor(DType::u8, {1'000'000}, stream, 0)}});
  const Checkpoint folded = fold_compressed(checkpoint, {});
  EXPECT_EQ(stream->restarts(), 1u);
  for (const auto& [name, tensor] : folded) EXPECT_EQ(tensor.rank(), 1u) << name;
  expect_same_tensors(unfold_compressed(folded, {}), checkpoint);
}

TEST(Compressed, CompressesATensorWithTwoNamesOnce) {
  const Tensor tensor = shrinking(DType::bf16, {100'000});
  const Checkpoint checkpoint =
      of({{"a", tensor}, {"b", tensor.reshape({100, 1000})}, {"c", tensor.bitcast(DType::i16)}});
  const Checkpoint folded = fold_compressed(checkpoint, {});
  EXPECT_EQ(folded.at("a").storage(), folded.at("b").storage());
  EXPECT_NE(folded.at("a").storage(), folded.at("c").storage());
  expect_same_tensors(unfold_compressed(folded, {}), checkpoint);
}

TEST(Compressed, CountsTheBytesAndCanBeStopped) {
  const Checkpoint checkpoint =
      of({{"w", shrinking(DType::f32, {1'000'000})}, {"v", shrinking(DType::f32, {500'000})}});
  std::uint64_t done = 0, total = 0;
  SaveOptions options;
  options.progress = [&](const ProgressState& state) {
    done = state.done_bytes;
    total = state.total_bytes;
    return true;
  };
  fold_compressed(checkpoint, options);
  EXPECT_EQ(done, 6'000'000u);
  EXPECT_EQ(total, 6'000'000u);
  options.progress = [](const ProgressState&) { return false; };
  EXPECT_ERROR(fold_compressed(checkpoint, options), Errc::cancelled, "cancelled");
}

TEST(Compressed, PreparesStoragesThatNeedIt) {
  const auto bytes = shrinking_bytes(200'000);
  const Checkpoint checkpoint =
      of({{"w", Tensor(DType::u8, {200'000}, std::make_shared<test::PreparedStorage>(bytes))}});
  expect_same_tensors(unfold_compressed(fold_compressed(checkpoint, {}), {}), checkpoint);
}

TEST(Compressed, SurvivesAFileAndAnyNumberOfThreads) {
  const test::TempDir dir;
  Checkpoint checkpoint = of({{"a", shrinking(DType::bf16, {1000, 3000})},
                              {"b", shrinking(DType::f32, {3, 5, 100'000})},
                              {"c", shrinking(DType::f32, {10})},
                              {"\"odd\" \xE2\x82\xAC", shrinking(DType::i64, {20'000})}});
  checkpoint.metadata["format"] = "pt";
  std::string first;
  for (const unsigned threads : {1u, 2u, 5u}) {
    for (const std::uint64_t memory : {std::uint64_t{64} << 20, std::uint64_t{1} << 16}) {
      SaveOptions options;
      options.threads = threads;
      options.memory_bytes = memory;
      options.overwrite = true;
      options.durable = false;
      save(fold_compressed(checkpoint, options), dir / "c.safetensors", options);
      if (first.empty()) first = dir.read("c.safetensors");
      EXPECT_TRUE(dir.read("c.safetensors") == first) << threads;
    }
  }
  EXPECT_LT(first.size(), 5'000'000u);
  expect_same_tensors(unfold_compressed(open(dir / "c.safetensors"), {}), checkpoint);
}

TEST(Compressed, OpensShardByShardToo) {
  const test::TempDir dir;
  const Checkpoint checkpoint =
      of({{"a", shrinking(DType::bf16, {500, 1000})}, {"b", shrinking(DType::i16, {700'000})}});
  SaveOptions options;
  options.max_shard_bytes = 300'000;
  save(fold_compressed(checkpoint, options), dir / "m.safetensors", options);
  expect_same_tensors(unfold_compressed(open(dir / "m.safetensors.index.json"), {}), checkpoint);
  const Checkpoint shard = unfold_compressed(open(dir / "m-00001-of-00002.safetensors"), {});
  ASSERT_EQ(shard.size(), 1u);
  EXPECT_NE(shard.tensors[0].tensor.dtype(), DType::u8);
  EXPECT_TRUE(shard.notes.empty());
}

TEST(Compressed, IsCompressedAnewFromACompressedFile) {
  const Checkpoint checkpoint = one(DType::f32, {1'000'000});
  const Checkpoint once = fold_compressed(checkpoint, {});
  const Checkpoint twice = fold_compressed(unfold_compressed(once, {}), {});
  EXPECT_EQ(hash(once).digest, hash(twice).digest);
  EXPECT_EQ(once.metadata, twice.metadata);
}

// Anybody can write metadata.
TEST(Compressed, LeavesMetadataThatDoesNotFitAndSaysSo) {
  const Checkpoint folded = fold_compressed(one(), {});
  const auto refused = [&](const std::string& text) {
    SCOPED_TRACE(text.substr(0, 200));
    Checkpoint checkpoint = folded;
    checkpoint.metadata[kCompressedKey] = text;
    const Checkpoint back = unfold_compressed(checkpoint, {});
    EXPECT_TRUE(test::has_note(back, "does not fit the tensors"));
    EXPECT_EQ(back.metadata.at(kCompressedKey), text);
    EXPECT_EQ(back.at("w").storage(), folded.at("w").storage());
  };
  const auto entry = [](const std::string& dtype, const std::string& shape) {
    return R"({"version":1,"tensors":{"w":{"dtype":)" + dtype + R"(,"shape":)" + shape + "}}}";
  };
  refused("");
  refused("[]");
  refused("{}");
  refused(R"({"version":1})");
  refused(R"({"tensors":{}})");
  refused(R"({"version":1,"tensors":[]})");
  refused(R"({"version":2,"tensors":{}})");
  refused(R"({"version":1,"tensors":{"w":1}})");
  refused(R"({"version":1,"tensors":{"w":{}}})");
  refused(R"({"version":1,"tensors":{"w":{"dtype":"BF16","shape":[1]},"w":{"dtype":"BF16","shape":[2]}}})");
  refused(std::string(100'000, '['));
  refused(entry("1", "[300,1000]"));
  refused(entry("\"BF17\"", "[300,1000]"));
  refused(entry("\"Q4_K\"", "[256]"));
  refused(entry("\"BF16\"", "1"));
  refused(entry("\"BF16\"", "[-1]"));
  refused(entry("\"BF16\"", "[1.5]"));
  refused(entry("\"F4\"", "[1]"));
  refused(entry("\"BF16\"", "[4294967296,4294967296]"));
  refused(entry("\"BF16\"", "[9223372036854775807]"));
  refused(entry("\"BF16\"", "[9223372036854775808]"));
  refused(entry("\"BF16\"", "[1000000000000]"));
  std::string ones = "[300,1000";
  for (int i = 2; i < 64; ++i) ones += ",1";
  refused(entry("\"BF16\"", ones + ",1]"));
  Checkpoint checkpoint = folded;
  checkpoint.metadata[kCompressedKey] = entry("\"BF16\"", ones + "]");
  EXPECT_EQ(unfold_compressed(checkpoint, {}).at("w").rank(), 64u);
}

// A compressed tensor is never smaller than its table.
TEST(Compressed, LeavesTensorsThatHaveNoRoomForTheirTable) {
  const auto unfolded = [](std::size_t bytes) {
    Checkpoint checkpoint = of({{"w", Tensor::from_bytes(DType::u8, {bytes}, std::vector<std::byte>(bytes))}});
    checkpoint.metadata[kCompressedKey] = R"({"version":1,"tensors":{"w":{"dtype":"U8","shape":[100]}}})";
    return unfold_compressed(checkpoint, {});
  };
  constexpr std::size_t kTableBytes = 17 + 8;
  EXPECT_TRUE(test::has_note(unfolded(kTableBytes - 1), "does not fit the tensors"));
  EXPECT_TRUE(unfolded(kTableBytes).notes.empty());
}

TEST(Compressed, BeginsAtSixtyFourKibibytes) {
  constexpr std::uint64_t kSmallest = 64 << 10;
  EXPECT_TRUE(fold_compressed(one(DType::u8, {kSmallest}), {}).metadata.contains(kCompressedKey));
  EXPECT_FALSE(fold_compressed(one(DType::u8, {kSmallest - 1}), {}).metadata.contains(kCompressedKey));
}

TEST(Compressed, LeavesTensorsThatAreNotBytesInARow) {
  Checkpoint checkpoint = fold_compressed(one(), {});
  const Tensor packed = checkpoint.at("w");
  for (const Tensor& other :
       {packed.reshape({1, packed.nbytes()}), packed.bitcast(DType::i8), Tensor::from_bytes(DType::u8, {0}, {}),
        Tensor(DType::u8, {packed.nbytes() / 2}, Strides{2}, packed.storage())}) {
    checkpoint.tensors.replace("w", other);
    EXPECT_TRUE(test::has_note(unfold_compressed(checkpoint, {}), "does not fit the tensors"));
  }
}

TEST(Compressed, OpensATensorThatCannotBeReadAndSaysSoWhenItIsRead) {
  Checkpoint checkpoint = fold_compressed(one(), {});
  checkpoint.metadata[kCompressedKey] =
      R"({"version":1,"tensors":{"w":{"dtype":"BF16","shape":[300,1001]},"gone":{"dtype":"U8","shape":[1]}}})";
  const Checkpoint opened = unfold_compressed(checkpoint, {});
  EXPECT_TRUE(opened.notes.empty());
  std::byte one;
  EXPECT_ERROR(opened.at("w").read(0, {&one, 1}), Errc::malformed, "tensor \"w\" has a seek table whose");
}

TEST(Compressed, NeitherMakesNorOpensMoreExpansionThanTheLimitsAllow) {
  Checkpoint checkpoint = of({{"w", shrinking(DType::u8, {400'000})}});
  checkpoint.tensors.insert("zeros", Tensor::from_bytes(DType::f32, {3'000'000}, std::vector<std::byte>(12'000'000)));
  checkpoint.tensors.insert("more", Tensor::from_bytes(DType::f32, {2'000'000}, std::vector<std::byte>(8'000'000)));
  SaveOptions options;
  options.limits.max_expansion_bytes = 100'000;
  options.limits.max_expansion_ratio = 20;
  const Checkpoint folded = fold_compressed(checkpoint, {});
  EXPECT_LT(folded.at("zeros").nbytes(), 2000u);
  EXPECT_ERROR(unfold_compressed(folded, options.limits), Errc::limit, "would decompress to");
  const Checkpoint within = fold_compressed(checkpoint, options);
  EXPECT_EQ(within.at("zeros").dtype(), DType::f32);
  EXPECT_EQ(within.at("more").dtype(), DType::u8);
  EXPECT_EQ(within.at("w").rank(), 1u);
  expect_same_tensors(unfold_compressed(within, options.limits), checkpoint);
}

}  // namespace
}  // namespace ballast
