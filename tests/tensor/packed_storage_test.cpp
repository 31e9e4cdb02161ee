// Compressed tensors: packed bytes come out again, whatever range is asked for; bytes that are not as they were packed
// are refused, with the tensor's name.
#include <ballast/source.hpp>

#include "tensor/packed_storage.hpp"

#include <gtest/gtest.h>
#include <zstd.h>

#include <bit>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>

#include "builders/temp_dir.hpp"
#include "support/expect_error.hpp"
#include "support/fake_storages.hpp"
#include "tensor/packed_frames.hpp"
#include "tensor/source_storage.hpp"

namespace ballast {
namespace {

using Bytes = std::vector<std::byte>;

// Bytes that can be compressed: mostly small numbers.
Bytes shrinking_bytes(std::size_t size, unsigned seed = 1) {
  std::mt19937 random(seed);
  Bytes bytes(size);
  for (std::byte& b : bytes) b = static_cast<std::byte>(std::countr_zero(random() | 0x80000000u));
  return bytes;
}

Tensor tensor_of(DType dtype, const Bytes& bytes) {
  const std::uint64_t count = bytes.size() / info(dtype).block_bytes * info(dtype).block_elements;
  return Tensor::from_bytes(dtype, Shape{count}, bytes);
}

Bytes read_all(const Storage& storage) {
  Bytes bytes(storage.size_bytes());
  storage.read(0, bytes);
  return bytes;
}

std::vector<std::uint32_t> measure(const Tensor& tensor) {
  std::vector<std::uint32_t> sizes;
  for (std::uint64_t i = 0; i < chunk_count(tensor.nbytes()); ++i) sizes.push_back(measure_frame(tensor, i));
  return sizes;
}

StoragePtr pack(const Tensor& tensor) { return packed_storage(tensor, measure(tensor), "w"); }

StoragePtr unpack(const Bytes& packed, DType dtype, std::uint64_t bytes) {
  return unpacked_storage(Tensor::from_bytes(DType::u8, Shape{packed.size()}, packed), dtype, bytes, "w");
}

// Unpacks from a file, behind 1000 other bytes.
StoragePtr unpack_file(const Bytes& packed, DType dtype, std::uint64_t bytes) {
  const test::TempDir folder;
  std::string text(1000 + packed.size(), 'x');
  std::memcpy(text.data() + 1000, packed.data(), packed.size());
  const auto source = file_source(folder.write("model", text));
  return unpacked_storage(Tensor(DType::u8, Shape{packed.size()}, source_storage(source, 1000, packed.size())), dtype,
                          bytes, "w");
}

std::uint32_t u32_at(const Bytes& bytes, std::size_t offset) {
  std::uint32_t value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

Bytes with_u32(Bytes bytes, std::size_t offset, std::uint32_t value) {
  std::memcpy(bytes.data() + offset, &value, sizeof value);
  return bytes;
}

TEST(PackedStorage, GivesBackEveryDtype) {
  for (const DTypeInfo& type : all_dtypes()) {
    for (const std::size_t blocks : {std::size_t{0}, std::size_t{1}, std::size_t{1000}, 2 * kChunkBytes / 32 + 7}) {
      const Bytes bytes = shrinking_bytes(blocks * type.block_bytes);
      const auto packed = pack(tensor_of(type.dtype, bytes));
      EXPECT_EQ(read_all(*unpack(read_all(*packed), type.dtype, bytes.size())), bytes) << type.name << " " << blocks;
    }
  }
}

TEST(PackedStorage, GivesBackSizesAroundAChunk) {
  for (const std::size_t size : {kChunkBytes - 2, kChunkBytes, kChunkBytes + 2, 3 * kChunkBytes - 2, 3 * kChunkBytes}) {
    const Bytes bytes = shrinking_bytes(size);
    const auto packed = pack(tensor_of(DType::bf16, bytes));
    EXPECT_EQ(packed->size_bytes(), packed_bytes(measure(tensor_of(DType::bf16, bytes))));
    EXPECT_LT(packed->size_bytes(), size / 2);
    EXPECT_EQ(read_all(*unpack(read_all(*packed), DType::bf16, size)), bytes) << size;
  }
}

TEST(PackedStorage, GivesBackBytesThatDoNotShrink) {
  const Bytes bytes = test::some_bytes(2 * kChunkBytes + 100, 7);
  const Bytes packed = read_all(*pack(tensor_of(DType::f32, bytes)));
  EXPECT_LT(packed.size(), bytes.size() + 1000);
  EXPECT_EQ(read_all(*unpack(packed, DType::f32, bytes.size())), bytes);
}

TEST(PackedStorage, ReadsAnyRangeOfEitherSide) {
  const Bytes bytes = shrinking_bytes(3 * kChunkBytes + 1234);
  const auto packed = pack(tensor_of(DType::f16, bytes));
  const Bytes all_packed = read_all(*packed);
  const auto unpacked = unpack(all_packed, DType::f16, bytes.size());
  EXPECT_EQ(unpacked->granule(), kChunkBytes);
  std::mt19937_64 random(3);
  for (int i = 0; i < 60; ++i) {
    for (const auto& [storage, all] : {std::pair(packed.get(), &all_packed), std::pair(unpacked.get(), &bytes)}) {
      const std::size_t first = random() % all->size();
      const std::size_t size = random() % (all->size() - first) / (i % 2 ? 1 : 1000);
      Bytes part(size);
      storage->read(first, part);
      EXPECT_TRUE(std::equal(part.begin(), part.end(), all->begin() + static_cast<std::ptrdiff_t>(first)));
    }
  }
}

TEST(PackedStorage, ReadsFromManyThreads) {
  const Bytes bytes = shrinking_bytes(4 * kChunkBytes);
  const auto packed = pack(tensor_of(DType::f64, bytes));
  const Bytes all_packed = read_all(*packed);
  const auto unpacked = unpack(all_packed, DType::f64, bytes.size());
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      EXPECT_EQ(read_all(*unpacked), bytes);
      EXPECT_EQ(read_all(*packed), all_packed);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(PackedStorage, ReadsStridedTensors) {
  const Bytes bytes = shrinking_bytes(1500 * 700 * 2);
  const Tensor matrix = Tensor::from_bytes(DType::bf16, Shape{1500, 700}, bytes).transpose();
  Bytes turned(bytes.size());
  matrix.read(0, turned);
  EXPECT_EQ(read_all(*unpack(read_all(*pack(matrix)), DType::bf16, bytes.size())), turned);
}

// Each storage takes its bytes from the next one while it is in the middle of a chunk of its own.
TEST(PackedStorage, CanLieOnTopOfEachOther) {
  const Bytes bytes = shrinking_bytes(2 * kChunkBytes + 10);
  Tensor tensor = tensor_of(DType::i16, bytes);
  for (int i = 0; i < 3; ++i) {
    const auto packed = pack(tensor);
    const Tensor packed_tensor(DType::u8, Shape{packed->size_bytes()}, packed);
    tensor = Tensor(DType::i16, tensor.shape(), unpacked_storage(packed_tensor, DType::i16, bytes.size(), "w"));
  }
  EXPECT_EQ(read_all(*tensor.storage()), bytes);
}

TEST(PackedStorage, GoesThroughAStreamOnceForEachPass) {
  const Bytes bytes = shrinking_bytes(3 * kChunkBytes);
  const auto stream = std::make_shared<test::DeflatedStorage>(bytes);
  const Tensor tensor(DType::bf16, Shape{bytes.size() / 2}, stream);
  const auto packed = pack(tensor);
  EXPECT_TRUE(packed->is_sequential());
  EXPECT_EQ(stream->restarts(), 1u);
  Bytes all(packed->size_bytes());
  for (std::size_t done = 0; done < all.size(); done += 100'000)
    packed->read(done, std::span(all).subspan(done, std::min<std::size_t>(100'000, all.size() - done)));
  EXPECT_EQ(stream->restarts(), 2u);
  EXPECT_EQ(read_all(*unpack(all, DType::bf16, bytes.size())), bytes);
}

TEST(PackedStorage, PreparesTheStorageBelow) {
  const Bytes bytes = shrinking_bytes(kChunkBytes);
  const auto below = std::make_shared<test::PreparedStorage>(bytes);
  const auto sizes = measure(tensor_of(DType::u8, bytes));
  const auto packed = packed_storage(Tensor(DType::u8, Shape{bytes.size()}, below), sizes, "w");
  const Tensor packed_tensor(DType::u8, Shape{packed->size_bytes()}, packed);
  const auto unpacked = unpacked_storage(packed_tensor, DType::u8, bytes.size(), "w");
  unpacked->prepare({});
  EXPECT_EQ(read_all(*unpacked), bytes);
}

TEST(PackedStorage, NoticesThatItsSourceChanged) {
  const Bytes bytes = shrinking_bytes(2 * kChunkBytes);
  auto sizes = measure(tensor_of(DType::u8, bytes));
  ++sizes[1];
  const auto packed = packed_storage(tensor_of(DType::u8, bytes), sizes, "w");
  EXPECT_ERROR(read_all(*packed), Errc::changed, "tensor \"w\" changed while it was being compressed");
}

TEST(PackedStorage, HasFramesAndATableAsZstdKnowsThem) {
  const Bytes bytes = shrinking_bytes(2 * kChunkBytes + 6);
  const Bytes packed = read_all(*pack(tensor_of(DType::i16, bytes)));
  // All frames are decompressed in one call, as any reader of zstd would: the planes of the three chunks.
  Bytes planes(bytes.size());
  ASSERT_EQ(ZSTD_decompress(planes.data(), planes.size(), packed.data(), packed.size()), planes.size());
  EXPECT_EQ(planes[1], bytes[2]);
  EXPECT_EQ(planes[kChunkBytes / 2], bytes[1]);
  EXPECT_EQ(planes[2 * kChunkBytes + 3], bytes[2 * kChunkBytes + 1]);

  const std::size_t table = packed.size() - seek_table_bytes(3);
  EXPECT_EQ(u32_at(packed, table), 0x184D2A5Eu);
  EXPECT_EQ(u32_at(packed, table + 4), 3 * 8 + 9u);
  EXPECT_EQ(u32_at(packed, table + 12), kChunkBytes);
  EXPECT_EQ(u32_at(packed, table + 28), 6u);
  EXPECT_EQ(u32_at(packed, packed.size() - 9), 3u);
  EXPECT_EQ(packed[packed.size() - 5], std::byte{0});
  EXPECT_EQ(u32_at(packed, packed.size() - 4), 0x8F92EAB1u);
  EXPECT_EQ(ZSTD_findFrameCompressedSize(packed.data(), packed.size()), u32_at(packed, table + 8));
}

TEST(PackedStorage, PutsSignsBehindMantissas) {
  const std::uint16_t bf16[] = {0x8000, 0x3F80, 0xBF81};  // -0, 1, and a little below -1
  const std::uint32_t c64[] = {0xC0000001, 0x3F800000};   // the two parts of one element
  const auto planes_in = [](DType dtype, std::span<const std::byte> bytes) {
    const Bytes packed = read_all(*pack(tensor_of(dtype, {bytes.begin(), bytes.end()})));
    std::vector<unsigned char> planes(bytes.size());
    EXPECT_EQ(ZSTD_decompress(planes.data(), planes.size(), packed.data(), packed.size()), planes.size());
    return planes;
  };
  EXPECT_EQ(planes_in(DType::bf16, std::as_bytes(std::span(bf16))),
            (std::vector<unsigned char>{1, 0x00, 0x03, 0, 0x7F, 0x7F}));
  EXPECT_EQ(planes_in(DType::c64, std::as_bytes(std::span(c64))),
            (std::vector<unsigned char>{3, 0, 0, 0x80, 0, 0, 0, 0x7F}));
}

TEST(PackedStorage, IsReadByTheCommandOfZstd) {
  if (std::system("zstd --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "no zstd here";
  const test::TempDir folder;
  const Bytes bytes = shrinking_bytes(kChunkBytes + 77);
  const Bytes packed = read_all(*pack(tensor_of(DType::u8, bytes)));
  folder.write("w.zst", {reinterpret_cast<const char*>(packed.data()), packed.size()});
  ASSERT_EQ(std::system(("zstd -q -d " + (folder / "w.zst")).c_str()), 0);
  const std::string plain = folder.read("w");
  EXPECT_EQ(plain, std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

TEST(PackedStorage, RefusesTablesThatLie) {
  const Bytes bytes = shrinking_bytes(2 * kChunkBytes + 6);
  const Bytes packed = read_all(*pack(tensor_of(DType::bf16, bytes)));
  const std::size_t table = packed.size() - seek_table_bytes(3);
  const auto refuses = [&](std::size_t offset, std::uint32_t value, std::size_t byte, const char* text) {
    const auto storage = unpack_file(with_u32(packed, table + offset, value), DType::bf16, bytes.size());
    EXPECT_ERROR_AT(read_all(*storage), Errc::malformed, text, 1000 + table + byte);
    EXPECT_ERROR(storage->prepare({}), Errc::malformed, text);
  };
  refuses(0, 0x184D2A50, 0, "tensor \"w\" has a seek table whose first magic is");
  refuses(4, 3 * 8 + 8, 4, "tensor \"w\" has a seek table whose size is 32 instead of 33");
  refuses(8, u32_at(packed, table + 8) + 1, 0, "tensor \"w\" has a seek table for frames of");
  refuses(8, 0xFFFFFFFF, 8, "tensor \"w\" has a seek table with a frame of 4294967295 bytes");
  refuses(8, 0, 0, "tensor \"w\" has a seek table for frames of");
  refuses(12, 0xFFFFFFFF, 12, "tensor \"w\" has a seek table whose chunk is 4294967295 instead of 1048576");
  refuses(28, 4, 28, "tensor \"w\" has a seek table whose chunk is 4 instead of 6");
  refuses(32, 2, 32, "tensor \"w\" has a seek table whose number of frames is 2 instead of 3");
  refuses(36, 0x92EAB180, 36, "tensor \"w\" has a seek table with descriptor 128 instead of 0");
  refuses(37, 0x8F92EAB0, 37, "tensor \"w\" has a seek table whose last magic is");
}

TEST(PackedStorage, RefusesSizesThatDoNotFitTheBytes) {
  const Bytes bytes = shrinking_bytes(2 * kChunkBytes + 6);
  const Bytes packed = read_all(*pack(tensor_of(DType::bf16, bytes)));
  for (const std::uint64_t size : {bytes.size() - 2, bytes.size() + 2, bytes.size() + kChunkBytes, kChunkBytes})
    EXPECT_ERROR(unpack(packed, DType::bf16, size)->prepare({}), Errc::malformed, "tensor \"w\" has a seek table");
  EXPECT_ERROR(unpack(packed, DType::bf16, UINT64_MAX - 1), Errc::malformed, "too few for a seek table");
  EXPECT_ERROR(unpack({}, DType::bf16, 0), Errc::malformed, "tensor \"w\" has 0 bytes, too few for a seek table of 17");
}

TEST(PackedStorage, NoticesEveryBrokenFrame) {
  const Bytes bytes = shrinking_bytes(kChunkBytes + 5000);
  const Bytes packed = read_all(*pack(tensor_of(DType::bf16, bytes)));
  const std::size_t table = packed.size() - seek_table_bytes(2);
  const std::uint32_t first = u32_at(packed, table + 8);
  std::mt19937 random(5);
  int unnoticed = 0;
  for (int i = 0; i < 100; ++i) {
    Bytes broken = packed;
    // The changed bytes include the frame's header, and lie in the second frame only.
    const std::size_t place = i < 20 ? first + static_cast<std::size_t>(i) : first + random() % (table - first);
    broken[place] ^= static_cast<std::byte>(1 << random() % 8);
    const auto storage = unpack_file(broken, DType::bf16, bytes.size());
    const auto error = test::error_of([&] { read_all(*storage); });
    // A few bits of a frame's header have no meaning.
    if (!error) {
      ++unnoticed;
      EXPECT_EQ(read_all(*storage), bytes);
      continue;
    }
    EXPECT_TRUE(test::is_error_at(error, Errc::malformed, "tensor \"w\" has a frame that", 1000 + first));
    Bytes untouched(kChunkBytes);
    storage->read(0, untouched);
    EXPECT_TRUE(std::equal(untouched.begin(), untouched.end(), bytes.begin()));
  }
  EXPECT_LT(unnoticed, 10);
}

TEST(PackedStorage, RefusesFramesThatAreOtherwiseFine) {
  const Bytes bytes = shrinking_bytes(5000);
  const auto wrapped = [&](const Bytes& frame) {
    Bytes packed = frame;
    const std::uint32_t sizes[] = {static_cast<std::uint32_t>(frame.size())};
    for (const std::byte b : seek_table(sizes, bytes.size())) packed.push_back(b);
    return unpack(packed, DType::u8, bytes.size());
  };
  const auto frame_of = [&](std::size_t size) {
    Bytes frame(ZSTD_compressBound(size));
    frame.resize(ZSTD_compress(frame.data(), frame.size(), bytes.data(), size, 3));
    return frame;
  };
  const auto joined = [](Bytes a, const Bytes& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  };
  EXPECT_EQ(read_all(*wrapped(frame_of(5000))), bytes);  // by any compressor
  EXPECT_ERROR(read_all(*wrapped(frame_of(4999))), Errc::malformed, "decompresses to 4999 bytes instead of 5000");
  EXPECT_ERROR(read_all(*wrapped(joined(frame_of(2500), frame_of(2500)))), Errc::malformed, "a frame that ends");
  const Bytes skippable = {std::byte{0x50}, std::byte{0x2A}, std::byte{0x4D}, std::byte{0x18}, {}, {}, {}, {}};
  EXPECT_ERROR(read_all(*wrapped(joined(skippable, frame_of(5000)))), Errc::malformed, "none of zstd's");
  EXPECT_ERROR(read_all(*wrapped(joined(frame_of(5000), skippable))), Errc::malformed, "a frame that ends");
  EXPECT_ERROR(read_all(*wrapped({})), Errc::malformed, "none of zstd's");
}

}  // namespace
}  // namespace ballast
