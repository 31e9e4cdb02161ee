// Manifests: what was written, to be checked later.
#include <gtest/gtest.h>
#include <xxhash.h>

#include <ballast/ballast.hpp>

#include "builders/temp_dir.hpp"
#include "support/expect_error.hpp"
#include "support/fake_storages.hpp"

namespace ballast {
namespace {

using test::some_bytes;

// Sizes around the leaves of 64 KiB.
constexpr std::uint64_t kSizes[] = {0, 1, 65'535, 65'536, 65'537, 131'072, 5'000'001};

Checkpoint checkpoint() {
  Checkpoint all;
  for (const std::uint64_t size : kSizes)
    all.tensors.insert("t" + std::to_string(size), Tensor(DType::u8, {size}, memory_storage(some_bytes(size, 3))));
  all.tensors.insert("deflated",
                     Tensor(DType::u8, {1'000'000}, std::make_shared<test::DeflatedStorage>(some_bytes(1'000'000, 4))));
  all.tensors.insert("strided", Tensor(DType::f32, {500, 300}, memory_storage(some_bytes(600'000, 5))).transpose());
  all.tensors.insert("cast", Tensor(DType::bf16, {100'000}, memory_storage(some_bytes(200'000, 6))).to(DType::f32));
  return all;
}

// Computes the digest as manifest.hpp describes it, written a second time.
std::uint64_t digest_by_the_book(const Tensor& tensor) {
  std::vector<std::byte> bytes(tensor.nbytes());
  tensor.read(0, bytes);
  std::vector<std::uint64_t> leaves;
  for (std::size_t at = 0; at < bytes.size(); at += 65'536)
    leaves.push_back(XXH3_64bits(bytes.data() + at, std::min<std::size_t>(65'536, bytes.size() - at)));
  if (leaves.empty()) return XXH3_64bits(nullptr, 0);
  return leaves.size() == 1 ? leaves[0] : XXH3_64bits(leaves.data(), leaves.size() * 8);
}

TEST(Manifest, HasTheDigestsThatManifestHppDescribes) {
  const Checkpoint all = checkpoint();
  for (const Manifest::Entry& entry : make_manifest(all).tensors)
    EXPECT_EQ(entry.digest, digest_by_the_book(all.at(entry.name))) << entry.name;
}

class DigestsWhileWriting : public testing::TestWithParam<std::tuple<unsigned, std::uint64_t, const char*>> {};

TEST_P(DigestsWhileWriting, AreThoseOfTheTensors) {
  const auto [threads, memory, ending] = GetParam();
  test::TempDir folder;
  const Checkpoint all = checkpoint();
  SaveOptions options;
  options.threads = threads;
  options.memory_bytes = memory;
  options.verify = true;
  const SaveReport report = save(all, folder / "out" + ending, options);
  // A torch file does not hold a strided tensor as such: it holds the storage, as it lies.
  EXPECT_GE(report.digests.size(), all.size() - 1);
  for (const auto& [name, digest] : report.digests) EXPECT_EQ(digest, digest_by_the_book(all.at(name))) << name;
}

INSTANTIATE_TEST_SUITE_P(All, DigestsWhileWriting,
                         testing::Combine(testing::Values(1u, 3u), testing::Values(1u << 16, 300'000u, 64u << 20),
                                          testing::Values(".safetensors", ".pt")));

TEST(Manifest, ComesBackFromItsFile) {
  test::TempDir folder;
  Checkpoint all = checkpoint();
  all.tensors.insert("meta \"quoted\" \n", Tensor(DType::f32, {2, 3}, meta_storage(24)));
  const Manifest written = make_manifest(all);
  save_manifest(written, folder / "m.json");
  const Manifest read = load_manifest(folder / "m.json");
  ASSERT_EQ(read.tensors.size(), written.tensors.size());
  for (std::size_t i = 0; i < read.tensors.size(); ++i) {
    EXPECT_EQ(read.tensors[i].name, written.tensors[i].name);
    EXPECT_EQ(read.tensors[i].dtype, written.tensors[i].dtype);
    EXPECT_EQ(read.tensors[i].shape, written.tensors[i].shape);
    EXPECT_EQ(read.tensors[i].digest, written.tensors[i].digest);
  }
}

TEST(Manifest, RefusesTextThatIsNotAManifest) {
  test::TempDir folder;
  const auto refuses = [&](std::string_view text, std::string_view why) {
    EXPECT_ERROR(load_manifest(folder.write("m.json", text)), Errc::malformed, why);
  };
  refuses("", "this is no JSON");
  refuses("[]", "is no manifest");
  refuses(R"({"weight_map":{}})", "it has no schema");
  refuses(R"({"schema":"ballast.manifest/2","tensors":[]})", "it has no schema");
  refuses(R"({"schema":"ballast.manifest/1"})", "there is no \"tensors\"");
  refuses(R"({"schema":"ballast.manifest/1","tensors":[{"name":"a","dtype":"X","shape":[],"xxh3":null}]})", "no dtype");
  refuses(R"({"schema":"ballast.manifest/1","tensors":[{"name":"a","dtype":"F32","shape":[],"xxh3":"12"}]})", "digest");
  refuses(R"({"schema":"ballast.manifest/1","tensors":[{"name":"a","dtype":"F32","shape":[-1],"xxh3":null}]})",
          "-1 is no whole number");
}

TEST(Verify, FindsWhatIsNotAsTheManifestSays) {
  test::TempDir folder;
  Checkpoint all;
  for (const char* name : {"a", "b", "c"})
    all.tensors.insert(name, Tensor(DType::u8, {100}, memory_storage(some_bytes(100, 1))));
  save_manifest(make_manifest(all), folder / "m.json");

  VerifyOptions options;
  options.manifest = folder / "m.json";
  save(all, folder / "good.pt");
  EXPECT_TRUE(verify(folder / "good.pt", options).ok()) << "in whatever format";

  Checkpoint bad;
  bad.tensors.insert("a", Tensor(DType::u8, {100}, memory_storage(some_bytes(100, 2))));
  bad.tensors.insert("b", Tensor(DType::i8, {100}, memory_storage(some_bytes(100, 1))));
  bad.tensors.insert("d", Tensor(DType::u8, {100}, memory_storage(some_bytes(100, 1))));
  save(bad, folder / "bad.safetensors");
  std::vector<std::string> findings;
  for (const Finding& finding : verify(folder / "bad.safetensors", options).findings) findings.push_back(finding.what);
  EXPECT_EQ(findings, (std::vector<std::string>{"the values of tensor \"a\" are not those of the manifest",
                                                "tensor \"b\" is I8 [100], in the manifest U8 [100]",
                                                "tensor \"c\" of the manifest is not there",
                                                "tensor \"d\" is not in the manifest"}));
}

}  // namespace
}  // namespace ballast
