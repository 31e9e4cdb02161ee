// Checksums that a source declares, and what happens if they are wrong.
#include <gtest/gtest.h>
#include <zlib.h>

#include <ballast/ballast.hpp>

#include "builders/temp_dir.hpp"
#include "kernels/crc32.hpp"
#include "support/expect_error.hpp"
#include "support/fake_storages.hpp"
#include "tensor/concat_storage.hpp"

namespace ballast {
namespace {

using test::some_bytes;

constexpr std::size_t kSize = 3'000'000;

std::uint32_t zlib_crc32(std::span<const std::byte> bytes) {
  return static_cast<std::uint32_t>(
      crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size())));
}

// A storage of any kind as a member of an archive, which has a checksum and an offset in a file.
class Member final : public Storage {
 public:
  Member(StoragePtr content, std::uint32_t declared) : content_(std::move(content)), declared_(declared) {}
  std::uint64_t size_bytes() const override { return content_->size_bytes(); }
  void read(std::uint64_t offset, std::span<std::byte> out) const override { content_->read(offset, out); }
  std::uint64_t granule() const override { return content_->granule(); }
  bool is_sequential() const override { return content_->is_sequential(); }
  std::span<const std::byte> mapped() const override { return content_->mapped(); }
  bool visit(std::uint64_t offset, std::uint64_t size,
             const std::function<void(std::span<const std::byte>)>& look) const override {
    return content_->visit(offset, size, look);
  }
  std::optional<Location> location() const override { return Location{"model.pt", 4096}; }
  std::optional<std::uint32_t> declared_crc32() const override { return declared_; }

 private:
  StoragePtr content_;
  std::uint32_t declared_;
};

enum class Kind { mapped, deflated, decoded };
constexpr const char* kKindNames[] = {"mapped", "deflated", "decoded"};

void PrintTo(Kind kind, std::ostream* out) { *out << kKindNames[static_cast<std::size_t>(kind)]; }

StoragePtr member(Kind kind, bool is_right) {
  const auto bytes = some_bytes(kSize, 1);
  const std::uint32_t declared = zlib_crc32(bytes) ^ (is_right ? 0 : 0xFF);
  switch (kind) {
    case Kind::mapped: return std::make_shared<Member>(memory_storage(bytes), declared);
    case Kind::deflated: return std::make_shared<Member>(std::make_shared<test::DeflatedStorage>(bytes), declared);
    case Kind::decoded: return std::make_shared<Member>(std::make_shared<test::DecodedStorage>(bytes, 4096), declared);
  }
  return nullptr;
}

// The ways in which tensors can take their bytes from a storage.
Checkpoint whole(const StoragePtr& storage) {
  Checkpoint checkpoint;
  checkpoint.tensors.insert("w", Tensor(DType::u8, {kSize}, storage));
  return checkpoint;
}
Checkpoint part(const StoragePtr& storage) {
  Checkpoint checkpoint;
  checkpoint.tensors.insert("w", Tensor(DType::u8, {1000}, storage, 500));
  return checkpoint;
}
Checkpoint strided(const StoragePtr& storage) {
  Checkpoint checkpoint;
  checkpoint.tensors.insert("w", Tensor(DType::u8, {kSize / 3, 3}, Strides{1, kSize / 3}, storage));
  return checkpoint;
}

Checkpoint made_of(const StoragePtr& storage) {
  Checkpoint checkpoint;
  checkpoint.tensors.insert("w", Tensor(DType::u8, {kSize}, storage).to(DType::f16));
  return checkpoint;
}

class DeclaredChecksums : public testing::TestWithParam<Kind> {};

TEST_P(DeclaredChecksums, AreNotMentionedIfTheyAreRight) {
  test::TempDir folder;
  for (const auto& make : {whole, part, strided, made_of}) {
    for (const char* name : {"out.safetensors", "out.pt"}) {
      SaveOptions options;
      options.overwrite = true;
      options.strict = true;
      options.memory_bytes = 1 << 18;
      EXPECT_TRUE(save(make(member(GetParam(), true)), folder / name, options).notes.empty());
    }
  }
}

TEST_P(DeclaredChecksums, AreANoteIfTheyAreWrong) {
  test::TempDir folder;
  for (const auto& make : {whole, part, strided, made_of}) {
    for (const char* name : {"out.safetensors", "out.pt"}) {
      SaveOptions options;
      options.overwrite = true;
      const SaveReport report = save(make(member(GetParam(), false)), folder / name, options);
      ASSERT_EQ(report.notes.size(), 1u);
      EXPECT_EQ(report.notes[0].where, "model.pt");
      EXPECT_TRUE(report.notes[0].text.starts_with("the bytes of tensor \"w\" have the checksum "))
          << report.notes[0].text;
    }
  }
}

TEST_P(DeclaredChecksums, StopAStrictSaveBeforeAnythingIsPublished) {
  test::TempDir folder;
  for (const auto& make : {whole, part, strided, made_of}) {
    SaveOptions options;
    options.strict = true;
    EXPECT_ERROR_AT(save(make(member(GetParam(), false)), folder / "out.safetensors", options), Errc::mismatch,
                    "model.pt: the bytes of tensor \"w\" have the checksum", 4096);
    EXPECT_TRUE(folder.names().empty());
  }
}

INSTANTIATE_TEST_SUITE_P(Storages, DeclaredChecksums, testing::Values(Kind::mapped, Kind::deflated, Kind::decoded),
                         [](const auto& kind) { return kKindNames[static_cast<std::size_t>(kind.param)]; });

TEST(SourceCheck, SaysThatATensorIsMadeFromBytesOfAnotherFile) {
  const Tensor damaged(DType::u8, {kSize}, member(Kind::mapped, false));
  const Tensor joined =
      concatenated({Tensor::from_values<std::uint8_t>(DType::u8, {2}, std::vector<std::uint8_t>{1, 2}), damaged}, 0);
  StateDict tensors;
  tensors.insert("layer.merged", joined);
  const std::vector<Note> notes = checksum_notes(tensors);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_TRUE(notes[0].text.starts_with("the bytes that tensor \"layer.merged\" is made from have the checksum "))
      << notes[0].text;
  EXPECT_ERROR(checksum_notes(tensors, {.strict = true}), Errc::mismatch, "is made from have the checksum");
}

TEST(SourceCheck, SaysOnceThatAllChecksumsOfAFileAreWrong) {
  test::TempDir folder;
  Checkpoint many;
  for (int i = 0; i < 20; ++i)
    many.tensors.insert("t" + std::to_string(i), Tensor(DType::u8, {kSize}, member(Kind::mapped, i == 3)));
  const SaveReport report = save(many, folder / "out.safetensors");
  ASSERT_EQ(report.notes.size(), 1u);
  EXPECT_TRUE(report.notes[0].text.ends_with("; so it is with 18 more")) << report.notes[0].text;
}

TEST(SourceCheck, ReadsAStreamOnceThatIsWrittenWhole) {
  test::TempDir folder;
  const auto bytes = some_bytes(kSize, 1);
  const auto deflated = std::make_shared<test::DeflatedStorage>(bytes);
  save(whole(std::make_shared<Member>(deflated, zlib_crc32(bytes))), folder / "out.pt");
  EXPECT_EQ(deflated->restarts(), 1u);
}

TEST(Crc32, OfPiecesIsThatOfTheWhole) {
  const auto bytes = some_bytes(100'000, 7);
  const std::span<const std::byte> all(bytes);
  EXPECT_EQ(kernels::crc32(0, all), zlib_crc32(all));
  EXPECT_EQ(kernels::crc32(0, {}), 0u);
  for (std::size_t cut : {0ul, 1ul, 4096ul, 99'999ul, 100'000ul}) {
    const std::uint32_t first = kernels::crc32(0, all.first(cut));
    EXPECT_EQ(kernels::crc32(first, all.subspan(cut)), zlib_crc32(all));
    EXPECT_EQ(kernels::combine_crc32(first, kernels::crc32(0, all.subspan(cut)), bytes.size() - cut), zlib_crc32(all));
  }
}

}  // namespace
}  // namespace ballast
