// hash, diff, stats and summary of checkpoints: what is said about values.
#include <gtest/gtest.h>
#include <openssl/sha.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <numeric>

#include <ballast/diff.hpp>
#include <ballast/hash.hpp>
#include <ballast/open.hpp>
#include <ballast/save.hpp>
#include <ballast/stats.hpp>
#include <ballast/summary.hpp>
#include <ballast/transform.hpp>

#include "builders/safetensors_file.hpp"
#include "support/expect_error.hpp"
#include "support/tensor_values.hpp"

namespace ballast {
namespace {

namespace fs = std::filesystem;
using test::SafetensorsFile;
using test::TempDir;
using namespace std::string_literals;

std::string sha256(const std::string& bytes) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest);
  std::string hex;
  for (const unsigned char byte : digest) {
    hex += "0123456789abcdef"[byte >> 4];
    hex += "0123456789abcdef"[byte & 15];
  }
  return hex;
}

TEST(Hash, IsThatOfTheBytes) {
  const Checkpoint checkpoint = SafetensorsFile().tensor("w", "F32", {3, 5}).tensor("e", "F32", {0}).open();
  const HashReport report = hash(checkpoint);
  ASSERT_EQ(report.tensors.size(), 2u);
  EXPECT_EQ(report.tensors[0].name, "w");
  EXPECT_EQ(report.tensors[0].sha256, sha256(test::text_of(checkpoint.at("w"))));
  EXPECT_EQ(report.tensors[1].sha256, sha256(""));
}

// The hash is SHA-256 over "name NUL dtype NUL shape NUL hex LF", sorted by the names' bytes.
TEST(Hash, OfTheWholeIsOverSortedLines) {
  const Checkpoint checkpoint =
      SafetensorsFile().tensor("b", "F32", {2, 3}).tensor("a", "I8", {}).tensor("B", "U8", {0, 7}).open();
  const auto hex = [&](const char* name) { return sha256(test::text_of(checkpoint.at(name))); };
  EXPECT_EQ(hash(checkpoint).digest, sha256("B\0U8\0"s + "0,7\0"s + hex("B") + "\n" + "a\0I8\0\0"s + hex("a") + "\n" +
                                            "b\0F32\0"s + "2,3\0"s + hex("b") + "\n"));
  EXPECT_EQ(hash({}).digest, sha256(""));
}

TEST(Hash, IsTheSameWhateverTheOrderTheShardsAndTheThreads) {
  SafetensorsFile file;
  for (int i = 0; i < 30; ++i)
    file.tensor("t" + std::to_string(i), i % 3 ? "F32" : "U8", {static_cast<std::uint64_t>(i * 100)});
  const Checkpoint checkpoint = file.open();
  const std::string digest = hash(checkpoint).digest;
  const TempDir folder;
  save(checkpoint, folder / "model.safetensors", {.max_shard_bytes = 20'000, .durable = false});
  const Checkpoint sharded = open(folder.path());
  EXPECT_GT(sharded.shards, 2u);
  EXPECT_EQ(hash(sharded).digest, digest);
  HashOptions one;
  one.threads = 1;
  EXPECT_EQ(hash(sharded, one).digest, digest);
}

TEST(Hash, OfAViewIsThatOfItsContiguousForm) {
  const Checkpoint checkpoint = SafetensorsFile().tensor("w", "F32", {4, 6}).open();
  Checkpoint view;
  view.tensors.insert("w", checkpoint.at("w").transpose());
  Checkpoint copy;
  copy.tensors.insert("w", checkpoint.at("w").transpose().realize());
  EXPECT_EQ(hash(view).digest, hash(copy).digest);
  EXPECT_NE(hash(view).digest, hash(checkpoint).digest);
}

TEST(Hash, GivesAliasesTheHashOfTheirTensor) {
  const HashReport report = hash(SafetensorsFile().metadata({{"head", "emb"}}).tensor("emb", "F32", {4}).open());
  ASSERT_EQ(report.tensors.size(), 2u);
  EXPECT_EQ(report.tensors[0].sha256, report.tensors[1].sha256);
}

TEST(Hash, OfATensorWithoutDataIsNothing) {
  Checkpoint checkpoint;
  checkpoint.tensors.insert("w", Tensor(DType::f32, {2}, meta_storage(8)));
  EXPECT_EQ(hash(checkpoint).tensors[0].sha256, std::nullopt);
}

TEST(Hash, StopsWhenTheCallerSaysSo) {
  HashOptions options;
  options.progress = [](const ProgressState&) { return false; };
  EXPECT_ERROR(hash(SafetensorsFile().tensor("w", "U8", {1 << 22}).open(), options), Errc::cancelled, "");
}

// A file that shrinks under the map is an error, never a signal.
TEST(Hash, OfAFileThatShrankIsAnError) {
  const TempDir folder;
  const std::string path = SafetensorsFile().tensor("w", "U8", {1 << 20}).write(folder, "x.safetensors");
  const Checkpoint checkpoint = open(path);
  fs::resize_file(path, 5000);
  EXPECT_ERROR(hash(checkpoint), Errc::changed, "shrank");
}

// diff

Checkpoint one(const std::vector<float>& values, const std::vector<std::uint64_t>& shape = {4}) {
  return SafetensorsFile().values<float>("w", "F32", shape, values).open();
}

TEST(Diff, FindsNothingBetweenEqualCheckpoints) {
  const DiffReport report = diff(one({1, 2, 3, 4}), one({1, 2, 3, 4}));
  EXPECT_TRUE(report.equal());
  EXPECT_EQ(report.equal_count, 1u);
  EXPECT_TRUE(diff({}, {}).equal());
}

TEST(Diff, TellsNamesShapesDtypesAndValuesApart) {
  const auto a = SafetensorsFile()
                     .tensor("only.a", "U8", {1})
                     .values<float>("shape", "F32", {2, 2}, {1, 2, 3, 4})
                     .values<float>("dtype", "F32", {1}, {1})
                     .values<float>("values", "F32", {3}, {1, 2, 3})
                     .open();
  const auto b = SafetensorsFile()
                     .values<float>("values", "F32", {3}, {1, 2.5f, 3})
                     .values<float>("shape", "F32", {4}, {1, 2, 3, 4})
                     .values<std::int32_t>("dtype", "I32", {1}, {1})
                     .tensor("only.b", "U8", {1})
                     .open();
  const DiffReport report = diff(a, b);
  EXPECT_FALSE(report.equal());
  EXPECT_EQ(report.only_in_a, std::vector<std::string>{"only.a"});
  EXPECT_EQ(report.only_in_b, std::vector<std::string>{"only.b"});
  ASSERT_EQ(report.changed.size(), 3u);
  const auto change = [&](const std::string& name) {
    return *std::find_if(report.changed.begin(), report.changed.end(), [&](const auto& c) { return c.name == name; });
  };
  EXPECT_EQ(change("shape").what, DiffReport::What::shape);
  EXPECT_EQ(change("shape").shape_b, Shape{4});
  EXPECT_EQ(change("dtype").what, DiffReport::What::dtype);
  EXPECT_EQ(change("dtype").dtype_b, DType::i32);
  EXPECT_EQ(change("values").what, DiffReport::What::values);
  EXPECT_EQ(change("values").different, 1u);
  EXPECT_EQ(change("values").max_abs, 0.5);
  EXPECT_DOUBLE_EQ(change("values").max_rel, 0.2);
}

TEST(Diff, SaysThatOnlyOneSideHasData) {
  const Checkpoint real = one({1, 2, 3, 4});
  Checkpoint skeleton;
  for (const auto& [name, tensor] : real)
    skeleton.tensors.insert(name, Tensor(tensor.dtype(), tensor.shape(), meta_storage(tensor.nbytes())));
  for (const DiffReport& report : {diff(real, skeleton), diff(skeleton, real)}) {
    ASSERT_EQ(report.changed.size(), 1u);
    EXPECT_EQ(report.changed[0].what, DiffReport::What::data);
  }
  EXPECT_TRUE(diff(skeleton, skeleton).equal());
  EXPECT_TRUE(diff(real, skeleton, {.values = false}).equal());
}

TEST(Diff, MayLeaveTheValuesAlone) {
  DiffOptions options;
  options.values = false;
  EXPECT_TRUE(diff(one({1, 2, 3, 4}), one({1, 2, 3, 5}), options).equal());
}

TEST(Diff, ToleratesWhatItIsToldTo) {
  DiffOptions options;
  options.tolerance = 0.5;
  EXPECT_TRUE(diff(one({1, 2, 3, 4}), one({1, 2, 3, 4.5f}), options).equal());
  EXPECT_FALSE(diff(one({1, 2, 3, 4}), one({1, 2, 3, 4.75f}), options).equal());
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(diff(one({1, 2, 3, 4}), one({1, 2, 3, nan}), options).equal());
  EXPECT_TRUE(diff(one({1, 2, 3, nan}), one({1, 2, 3, nan}), options).equal());
}

TEST(Diff, CountsOnlyValuesThatTheToleranceExcludes) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  // The tolerance covers the first two values, of which the second is the farthest apart relatively, and the sign of a
  // zero.
  const std::vector<float> a = {1, 1e-9F, 5, -0.0F, nan, 7}, b = {1.01F, 0, 8, 0, nan, 7};
  const DiffReport report = diff(one(a, {6}), one(b, {6}), {.tolerance = 0.1});
  ASSERT_EQ(report.changed.size(), 1u);
  EXPECT_EQ(report.changed[0].compared, 6u);
  EXPECT_EQ(report.changed[0].different, 1u);
  EXPECT_EQ(report.changed[0].max_abs, 3);
  EXPECT_EQ(report.changed[0].max_rel, 0.375);
  EXPECT_TRUE(diff(one(a, {6}), one(b, {6}), {.tolerance = 3}).equal());
}

TEST(Diff, SaysNothingAboutToleratedValuesBesideANaN) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const DiffReport report = diff(one({nan, 1e-9F}, {2}), one({1, 0}, {2}), {.tolerance = 0.1});
  ASSERT_EQ(report.changed.size(), 1u);
  EXPECT_EQ(report.changed[0].different, 1u);
  EXPECT_EQ(report.changed[0].nan_mismatch, 1u);
  EXPECT_EQ(report.changed[0].max_abs, 0);
  EXPECT_EQ(report.changed[0].max_rel, 0);
}

TEST(Diff, ToleratesPartsOfComplexNumbersAndIntegersOf64Bits) {
  const auto complex = [](float imaginary) {
    return SafetensorsFile().values<float>("w", "C64", {2}, {1, 2, 3, imaginary}).open();
  };
  EXPECT_TRUE(diff(complex(4), complex(4.25F), {.tolerance = 0.25}).equal());
  EXPECT_EQ(diff(complex(4), complex(4.25F), {.tolerance = 0.2}).changed.at(0).different, 1u);
  const auto whole = [](std::int64_t value) {
    return SafetensorsFile().values<std::int64_t>("w", "I64", {1}, {value}).open();
  };
  const std::int64_t large = std::int64_t{1} << 60;
  EXPECT_TRUE(diff(whole(large), whole(large + 2), {.tolerance = 2}).equal());
  EXPECT_FALSE(diff(whole(large), whole(large + 3), {.tolerance = 2}).equal());
  const DiffReport infinite = diff(one({INFINITY}, {1}), one({1}, {1}), {.tolerance = 1});
  EXPECT_EQ(infinite.changed.at(0).max_abs, INFINITY);
  EXPECT_TRUE(diff(one({INFINITY, 1}, {2}), one({INFINITY, 1.5F}, {2}), {.tolerance = 1}).equal());
}

// Blocks that differ are compared by their values: a distance that nobody computed must not count as zero.
TEST(Diff, ToleratesBlocksByTheirValues) {
  std::vector<float> values(64);
  std::iota(values.begin(), values.end(), 0.0F);
  const auto blocks = [&](float last) {
    values.back() = last;
    Checkpoint checkpoint;
    checkpoint.tensors.insert("w", Tensor::from_values<float>(DType::f32, {2, 32}, values).to(DType::q8_0));
    return checkpoint;
  };
  const DiffReport bits = diff(blocks(63), blocks(64));
  EXPECT_EQ(bits.changed.at(0).compared, 2u);
  EXPECT_EQ(bits.changed.at(0).different, 1u);
  const DiffReport values_apart = diff(blocks(63), blocks(64), {.tolerance = 0.9});
  EXPECT_EQ(values_apart.changed.at(0).compared, 64u);
  EXPECT_EQ(values_apart.changed.at(0).different, 1u);
  EXPECT_TRUE(diff(blocks(63), blocks(64), {.tolerance = 1.5}).equal());
}

TEST(Diff, CountsWhatIsNaNOnOneSideOnly) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const DiffReport report = diff(one({nan, 2, 3, nan}), one({1, 2, 3, nan}));
  ASSERT_EQ(report.changed.size(), 1u);
  EXPECT_EQ(report.changed[0].nan_mismatch, 1u);
  EXPECT_EQ(report.changed[0].max_abs, 0);
}

TEST(Diff, TellsLargeIntegersApart) {
  const std::int64_t large = std::int64_t{1} << 53;
  const auto integers = [](std::int64_t a, std::int64_t b) {
    return SafetensorsFile().values<std::int64_t>("w", "I64", {2}, {a, b}).open();
  };
  const DiffReport one_off = diff(integers(large, 1), integers(large + 1, 1), {.tolerance = 0.5});
  ASSERT_EQ(one_off.changed.size(), 1u);
  EXPECT_EQ(one_off.changed[0].max_abs, 1);
  const DiffReport far = diff(integers(INT64_MIN, 0), integers(INT64_MAX, 0));
  EXPECT_EQ(far.changed.at(0).max_abs, 0x1p64);
  EXPECT_EQ(far.changed.at(0).max_rel, 2);
  const auto unsigned_ = [](std::uint64_t a) {
    return SafetensorsFile().values<std::uint64_t>("w", "U64", {1}, {a}).open();
  };
  EXPECT_EQ(diff(unsigned_(UINT64_MAX), unsigned_(UINT64_MAX - 3)).changed.at(0).max_abs, 3);
}

// The tensors are 4 bytes that claim to be an exbibyte, and a storage that is used twenty thousand times.
TEST(RepeatedBytes, AreNotReadWithoutALimit) {
  Checkpoint bomb, other = one({1, 2, 3, 4});
  const std::vector<std::byte> four(4);
  bomb.tensors.insert("w", Tensor(DType::u8, {std::uint64_t{1} << 60}, Strides{0}, memory_storage(four)));
  other.tensors.replace("w", Tensor(DType::u8, {std::uint64_t{1} << 60}, Strides{0}, memory_storage(four)));
  EXPECT_ERROR(hash(bomb), Errc::limit, "\"w\" repeats bytes");
  EXPECT_ERROR(diff(bomb, other), Errc::limit, "\"w\" repeats bytes");
  EXPECT_ERROR(stats(bomb.at("w")), Errc::limit, "repeats bytes");
  Checkpoint many;
  const auto shared = memory_storage(std::vector<std::byte>(1 << 20));
  for (int i = 0; i < 20'000; ++i)
    many.tensors.insert(std::to_string(i), Tensor(DType::f32, {1, 1 << 18}, {1, 1}, shared));
  EXPECT_EQ(hash(many, {.limits = {.max_expansion_bytes = UINT64_MAX}}).tensors.size(), 20'000u);
  EXPECT_ERROR(plan_save(many, "out.safetensors"), Errc::limit, "repeats bytes");
}

// The user sets the limits, and 0 is a limit too.
TEST(RepeatedBytes, AreRefusedIfTheRatioIsZero) {
  Checkpoint views;
  views.tensors.insert("w", Tensor(DType::u8, {100}, Strides{0}, memory_storage(std::vector<std::byte>(4))));
  EXPECT_ERROR(hash(views, {.limits = {.max_expansion_bytes = 0, .max_expansion_ratio = 0}}), Errc::limit, "repeats");
}

TEST(RepeatedBytes, AreReadIfTheyAreFew) {
  Checkpoint views;
  const auto shared = memory_storage(std::vector<std::byte>(4));
  views.tensors.insert("w", Tensor(DType::u8, {1 << 20}, Strides{0}, shared));
  EXPECT_EQ(hash(views).tensors.size(), 1u);
  EXPECT_EQ(stats(views.at("w")).zeros, 1u << 20);
}

TEST(Diff, ComparesBitsIfNothingIsTolerated) {
  EXPECT_FALSE(diff(one({0.0f, 2, 3, 4}), one({-0.0f, 2, 3, 4})).equal());
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(diff(one({nan, 2, 3, 4}), one({nan, 2, 3, 4})).equal());
}

TEST(Diff, FindsOneChangedByteInMany) {
  const TempDir folder;
  const auto file = SafetensorsFile().tensor("w", "U8", {40 << 20});
  std::string bytes = file.text();
  folder.write("a", bytes);
  bytes[bytes.size() - 7] = static_cast<char>(bytes[bytes.size() - 7] ^ 1);
  folder.write("b", bytes);
  const DiffReport report = diff(open(folder / "a"), open(folder / "b"));
  ASSERT_EQ(report.changed.size(), 1u);
  EXPECT_EQ(report.changed[0].different, 1u);
  EXPECT_EQ(report.changed[0].max_abs, 1);
}

TEST(Diff, ComparesEveryDtype) {
  SafetensorsFile a, b;
  for (const DTypeInfo& type : all_dtypes()) {
    if (!type.in_safetensors) continue;
    a.tensor(type.name, type.name, {8});
    b.tensor(type.name, type.name, {8});
  }
  EXPECT_TRUE(diff(a.open(), b.open()).equal());
  std::string other = b.text();
  for (std::size_t i = 8 + b.header().size(); i < other.size(); ++i) other[i] = static_cast<char>(~other[i]);
  const auto bytes = std::as_bytes(std::span(other));
  EXPECT_EQ(diff(a.open(), open_bytes({bytes.begin(), bytes.end()})).changed.size(), 22u);
}

TEST(Diff, OfAFileThatShrankIsAnError) {
  const TempDir folder;
  const auto file = SafetensorsFile().tensor("w", "U8", {1 << 20});
  for (const char* victim : {"a", "b"}) {
    file.write(folder, "a");
    file.write(folder, "b");
    const Checkpoint a = open(folder / "a"), b = open(folder / "b");
    fs::resize_file(folder / victim, 5000);
    EXPECT_ERROR(diff(a, b), Errc::changed, "shrank") << victim;
  }
}

// stats

TEST(Stats, AreThoseOfTheFiniteValues) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const Checkpoint checkpoint =
      SafetensorsFile().values<float>("w", "F32", {8}, {1, 2, 3, 0, -0.0f, inf, -inf, nan}).open();
  StatsOptions options;
  options.bins = 3;
  const Stats result = stats(checkpoint.at("w"), options);
  EXPECT_EQ(result.count, 8u);
  EXPECT_EQ(result.zeros, 2u);
  EXPECT_EQ(result.nans, 1u);
  EXPECT_EQ(result.infinities, 2u);
  EXPECT_EQ(result.min, 0);
  EXPECT_EQ(result.max, 3);
  EXPECT_DOUBLE_EQ(result.mean, 1.2);
  EXPECT_DOUBLE_EQ(result.std, std::sqrt(6.8 / 5));
  EXPECT_EQ(result.histogram, (std::vector<std::uint64_t>{2, 1, 2}));
}

TEST(Stats, OfNothingAreZero) {
  StatsOptions options;
  options.bins = 4;
  const Stats empty = stats(SafetensorsFile().tensor("w", "F32", {0}).open().at("w"), options);
  EXPECT_EQ(empty.count, 0u);
  EXPECT_EQ(empty.finite(), 0u);
  EXPECT_EQ(empty.histogram, std::vector<std::uint64_t>(4));
  EXPECT_EQ(empty.max, 0);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Stats nans = stats(SafetensorsFile().values<float>("w", "F32", {2}, {nan, nan}).open().at("w"), options);
  EXPECT_EQ(nans.nans, 2u);
  EXPECT_EQ(nans.mean, 0);
}

TEST(Stats, AreTheSameWithAnyNumberOfThreads) {
  std::vector<float> values(9 << 20);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i));
  const Checkpoint checkpoint = SafetensorsFile().values<float>("w", "F32", {values.size()}, values).open();
  StatsOptions one, many;
  one.threads = 1;
  many.threads = 3;
  one.bins = many.bins = 16;
  const Stats a = stats(checkpoint.at("w"), one), b = stats(checkpoint.at("w"), many);
  EXPECT_EQ(a.mean, b.mean);
  EXPECT_EQ(a.std, b.std);
  EXPECT_EQ(a.histogram, b.histogram);
  EXPECT_EQ(std::accumulate(a.histogram.begin(), a.histogram.end(), std::uint64_t{0}), values.size());
}

TEST(Stats, ReadEveryDtypeThatHasAnOrder) {
  for (const DTypeInfo& type : all_dtypes()) {
    if (!type.in_safetensors) continue;
    const Checkpoint checkpoint = SafetensorsFile().tensor("w", type.name, {8}).open();
    if (type.kind == DTypeKind::complex) {
      EXPECT_ERROR(stats(checkpoint.at("w")), Errc::unsupported, "C64");
    } else {
      EXPECT_EQ(stats(checkpoint.at("w")).count, 8u) << type.name;
    }
  }
}

TEST(Stats, OfATensorWithoutDataAreAnError) {
  EXPECT_ERROR(stats(Tensor(DType::f32, {2}, meta_storage(8))), Errc::unsupported, "a meta tensor has no values");
}

// summary

TEST(Summary, CountsAndGroups) {
  SafetensorsFile file;
  for (int i = 0; i < 12; ++i) file.tensor("layers." + std::to_string(i) + ".w", "BF16", {4, 2});
  file.tensor("layers.12.w", "F32", {4, 2}).tensor("emb", "F32", {10});
  const Summary summary = summarize(file.open());
  EXPECT_EQ(summary.tensors, 14u);
  EXPECT_EQ(summary.parameters, 12 * 8 + 8 + 10u);
  EXPECT_EQ(summary.bytes, 12 * 16 + 32 + 40u);
  ASSERT_EQ(summary.dtypes.size(), 2u);
  EXPECT_EQ(summary.dtypes[0].dtype, DType::bf16);
  EXPECT_EQ(summary.dtypes[0].tensors, 12u);
  EXPECT_EQ(summary.dtypes[1].bytes, 72u);
  ASSERT_EQ(summary.patterns.size(), 3u);
  EXPECT_EQ(summary.patterns[0].name, "emb");
  EXPECT_EQ(summary.patterns[1].name, "layers.#.w");
  EXPECT_EQ(summary.patterns[1].tensors + summary.patterns[2].tensors, 13u);
  EXPECT_EQ(summary.roots, std::vector<std::string>{"layers"});
  EXPECT_EQ(summary.wasted_bytes, 0u);
  EXPECT_TRUE(summary.tied.empty());
}

TEST(Summary, CountsTiedTensorsOnce) {
  const Summary summary = summarize(SafetensorsFile().metadata({{"head", "emb"}}).tensor("emb", "F32", {4}).open());
  EXPECT_EQ(summary.tensors, 2u);
  EXPECT_EQ(summary.parameters, 4u);
  EXPECT_EQ(summary.bytes, 16u);
  EXPECT_EQ(summary.tied, (std::vector<std::vector<std::string>>{{"emb", "head"}}));
}

TEST(Summary, CountsTheBytesOfAFileThatNoTensorHas) {
  const TempDir folder;
  OpenOptions lenient;
  lenient.lenient = true;
  const auto path = SafetensorsFile().tensor("w", "U8", {2}).data(7).write(folder, "x.safetensors");
  const Checkpoint checkpoint = open(path, lenient);
  EXPECT_EQ(summarize(checkpoint).wasted_bytes, 5u);
}

TEST(Summary, CountsTheBytesBeforeAndBehindAStridedView) {
  const TempDir folder;
  Checkpoint checkpoint = open(SafetensorsFile().tensor("w", "F32", {100}).write(folder, "x.safetensors"));
  const Tensor all = checkpoint.at("w");
  for (const std::int64_t stride : {2, -2}) {
    const std::uint64_t first = all.offset() + (stride > 0 ? 40 : 72);
    checkpoint.tensors.replace("w", Tensor(DType::f32, {5}, Strides{stride}, all.storage(), first));
    EXPECT_EQ(summarize(checkpoint).wasted_bytes, 400u - 36u) << "the gaps between its elements are its own";
  }
}

TEST(Summary, OfNothing) {
  const Summary summary = summarize(Checkpoint{});
  EXPECT_EQ(summary.tensors + summary.parameters + summary.bytes + summary.wasted_bytes, 0u);
}

TEST(Summary, TakesNamesAsTheyAre) {
  const Summary summary = summarize(SafetensorsFile()
                                        .tensor("", "U8", {1})
                                        .tensor(".", "U8", {1})
                                        .tensor("1.2", "U8", {1})
                                        .tensor("a..0.", "U8", {1})
                                        .open());
  EXPECT_EQ(summary.tensors, 4u);
  std::vector<std::string> patterns;
  for (const auto& pattern : summary.patterns) patterns.push_back(pattern.name);
  std::sort(patterns.begin(), patterns.end());
  EXPECT_EQ(patterns, (std::vector<std::string>{"", "#.#", ".", "a..#."}));
}

}  // namespace
}  // namespace ballast
