// What is written as .npz is read again by our own reader, and by libzip. NumPy itself reads it in
// e2e/numpy_oracle_test.py.
#include <gtest/gtest.h>
#include <zip.h>

#include <numeric>

#include <ballast/ballast.hpp>

#include "builders/temp_dir.hpp"
#include "formats/npy/layout.hpp"
#include "formats/npy/npz_layout.hpp"
#include "formats/npy/reader.hpp"
#include "support/expect_error.hpp"
#include "support/fake_storages.hpp"
#include "support/tensor_values.hpp"

namespace ballast {
namespace {

using test::TempDir;
using test::values_of;

Tensor floats(std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 1.0f);
  return Tensor::from_values<float>(DType::f32, {count}, values);
}

Checkpoint some_arrays() {
  Checkpoint checkpoint;
  checkpoint.tensors.insert("model.layers.0.weight", floats(6).reshape({2, 3}));
  checkpoint.tensors.insert("model.layers.0.weight_t", floats(6).reshape({2, 3}).transpose());
  checkpoint.tensors.insert("nichts", Tensor(DType::f16, {0, 3}, nullptr));
  checkpoint.tensors.insert("skalar", floats(1).reshape({}));
  checkpoint.tensors.insert("größe/ü", floats(20'000));
  checkpoint.tensors.insert("", floats(2));
  return checkpoint;
}

TEST(NpzWriter, WritesWhatItsReaderReads) {
  const TempDir folder;
  const Checkpoint arrays = some_arrays();
  save(arrays, folder / "x.npz", {.verify = true});
  const Checkpoint read = open(folder / "x.npz");
  EXPECT_EQ(read.format, Format::npz);
  EXPECT_TRUE(read.notes.empty());
  ASSERT_EQ(read.size(), arrays.size());
  for (const auto& [name, tensor] : arrays) {
    EXPECT_EQ(read.at(name).dtype(), tensor.dtype()) << name;
    EXPECT_EQ(read.at(name).shape(), tensor.shape()) << name;
    EXPECT_EQ(test::text_of(read.at(name)), test::text_of(tensor)) << name;
    if (tensor.nbytes() == 0) continue;
    EXPECT_EQ(read.at(name).storage()->location()->offset % 64, 0u) << name;
  }
  EXPECT_TRUE(verify(folder / "x.npz").ok()) << "checksums included";
  EXPECT_TRUE(scan(folder / "x.npz").is_safe());
}

TEST(NpzWriter, WritesTheSameBytesEachTimeByAnyNumberOfThreads) {
  const TempDir folder;
  save(some_arrays(), folder / "a.npz", {.threads = 1});
  save(some_arrays(), folder / "b.npz", {.threads = 4, .memory_bytes = 1 << 16});
  EXPECT_EQ(folder.read("a.npz"), folder.read("b.npz"));
}

TEST(NpzWriter, WritesAZipThatLibzipAgreesWith) {
  const TempDir folder;
  save(some_arrays(), folder / "x.npz");
  int error = 0;
  zip_t* zip = zip_open((folder / "x.npz").c_str(), ZIP_RDONLY | ZIP_CHECKCONS, &error);
  ASSERT_NE(zip, nullptr) << error;
  EXPECT_EQ(zip_get_num_entries(zip, 0), 6);
  zip_file_t* file = zip_fopen(zip, "größe/ü.npy", ZIP_FL_ENC_UTF_8);
  ASSERT_NE(file, nullptr);
  std::string content(128 + 80'000 + 1, '\0');
  EXPECT_EQ(zip_fread(file, content.data(), content.size()), 128 + 80'000) << "which compares the checksum, too";
  EXPECT_TRUE(content.starts_with("\x93NUMPY"));
  zip_fclose(file);
  zip_discard(zip);
}

TEST(NpzWriter, RefusesDtypesThatNumPyHasNoNameForAndHintsAtAWay) {
  Checkpoint checkpoint;
  checkpoint.tensors.insert("w", floats(32).to(DType::bf16));
  EXPECT_ERROR(plan_save(checkpoint, "x.npz"), Errc::unsupported,
               "tensor \"w\" has dtype BF16, which NumPy has no name for");
  EXPECT_HINT(plan_save(checkpoint, "x.npz"), "cast() to F32");
  checkpoint.tensors.replace("w", floats(32).to(DType::q8_0));
  EXPECT_HINT(plan_save(checkpoint, "x.npz"), "cast() to F32");
  EXPECT_NO_THROW(plan_save(cast(checkpoint, DType::f16), "x.npz"));
  checkpoint.tensors.replace("w", Tensor(DType::f32, {4}, meta_storage(16)));
  EXPECT_ERROR(plan_save(checkpoint, "x.npz"), Errc::unsupported, "no data");
}

TEST(NpzWriter, RefusesNamesThatLeadOutOfAnArchive) {
  using namespace std::string_literals;
  for (const std::string& name : {"/etc/passwd"s, "../x"s, "a/../../x"s, "a/.."s, ".."s, "\\x"s, "a\\..\\x"s, "C:x"s}) {
    Checkpoint checkpoint;
    checkpoint.tensors.insert(name, floats(1));
    EXPECT_ERROR(plan_save(checkpoint, "x.npz"), Errc::unsupported, "out of its folder") << name;
    EXPECT_HINT(plan_save(checkpoint, "x.npz"), "rename()");
  }
  for (const std::string& name : {"a\0b"s, "PK\5\6"s, "\xff"s, std::string(65'532, 'x')}) {
    Checkpoint checkpoint;
    checkpoint.tensors.insert(name, floats(1));
    EXPECT_ERROR(plan_save(checkpoint, "x.npz"), Errc::unsupported, "a name that a zip cannot keep") << name.size();
  }
  for (const std::string& name : {"a..b"s, "...x"s, "a/b"s, "xx:y"s, std::string(65'531, 'x')}) {
    Checkpoint checkpoint;
    checkpoint.tensors.insert(name, floats(1));
    EXPECT_NO_THROW(plan_save(checkpoint, "x.npz")) << name.size();
  }
}

TEST(NpzWriter, IsOneFile) {
  EXPECT_ERROR(plan_save(some_arrays(), "x.npz", {.max_shard_bytes = 8}), Errc::unsupported, "one file");
}

TEST(NpzWriter, SaysThatItCannotKeepMetadata) {
  Checkpoint checkpoint = some_arrays();
  checkpoint.metadata.emplace("author", "me");
  const SavePlan plan = plan_save(checkpoint, "x.npz");
  ASSERT_EQ(plan.notes.size(), 1u);
  EXPECT_EQ(plan.notes[0].text, "an npz archive has no place for metadata; left out: \"author\"");
}

std::string text_of_bytes(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string little_endian(std::uint64_t value) { return {reinterpret_cast<const char*>(&value), sizeof value}; }

TEST(NpzWriter, WritesZip64FieldsIfAndOnlyIfTheyAreNeeded) {
  constexpr std::uint64_t kVast = (std::uint64_t{1} << 32) + 4096;
  Checkpoint big;
  big.tensors.insert("big", Tensor(DType::u8, {kVast}, std::make_shared<test::VastStorage>(kVast)));
  big.tensors.insert("small", floats(3));
  const SavePlan::File file = plan_save(big, "x.npz").files.front();
  const std::uint32_t crc32s[] = {1, 2};
  const auto pieces = file.finish(crc32s);
  ASSERT_EQ(pieces.size(), 3u);
  const std::string first = text_of_bytes(pieces[0].bytes), second = text_of_bytes(pieces[1].bytes);
  const std::string sizes = little_endian(kVast + 128);
  EXPECT_NE(first.find("big.npy" + std::string("\1\0\x10\0", 4) + sizes + sizes + "FB"), std::string::npos);
  EXPECT_NE(second.find("small.npyFB"), std::string::npos) << "only the directory says that it lies so far behind";
  const std::string directory = text_of_bytes(pieces[2].bytes);
  EXPECT_NE(directory.find("big.npy" + std::string("\1\0\x10\0", 4) + sizes + sizes + "PK"), std::string::npos);
  EXPECT_NE(directory.find("small.npy" + std::string("\1\0\x08\0", 4) + little_endian(pieces[1].offset) + "PK\6\6"),
            std::string::npos);
  EXPECT_EQ(pieces[2].offset + directory.size(), file.size_bytes);
  EXPECT_EQ(text_of_bytes(plan_save(some_arrays(), "x.npz").files[0].finish(std::vector<std::uint32_t>(6)).back().bytes)
                .find("PK\6\6"),
            std::string::npos);
}

TEST(Npy, HasItsMagicAndATypeThatNumPyNames) {
  EXPECT_ERROR_AT(npy::read_header(*memory_source(std::vector<std::byte>(100)), {}), Errc::malformed,
                  "not a NumPy file", 0);
  EXPECT_ERROR(npy::encode_header(Tensor(DType::bf16, {1}, memory_storage(std::vector<std::byte>(2)))),
               Errc::unsupported, "NumPy has no name for BF16");
}

}  // namespace
}  // namespace ballast
