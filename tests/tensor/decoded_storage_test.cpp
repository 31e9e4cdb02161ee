#include "tensor/decoded_storage.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "kernels/cast.hpp"
#include "kernels/ggml/decode.hpp"
#include "support/expect_error.hpp"

namespace ballast {
namespace {

using Bytes = std::vector<std::byte>;

Bytes random_bytes(std::size_t size, unsigned seed) {
  std::mt19937 random(seed);
  Bytes bytes(size);
  for (std::byte& b : bytes) b = static_cast<std::byte>(random());
  return bytes;
}

Tensor random_blocks(DType type, std::uint64_t rows, std::uint64_t blocks) {
  const std::uint64_t row = blocks * info(type).block_elements;
  return Tensor::from_bytes(type, Shape{rows, row}, random_bytes(rows * blocks * info(type).block_bytes, 7));
}

Bytes whole(const Tensor& tensor) {
  Bytes bytes(tensor.nbytes());
  tensor.read(0, bytes);
  return bytes;
}

Bytes range(const Tensor& tensor, std::uint64_t first, std::uint64_t size) {
  Bytes bytes(size);
  tensor.read(first, bytes);
  return bytes;
}

// Behaves like a file that is read and not mapped, and counts what is asked of it.
class ReadOnlyStorage final : public Storage {
 public:
  explicit ReadOnlyStorage(Bytes bytes) : bytes_(std::move(bytes)) {}
  std::uint64_t size_bytes() const override { return bytes_.size(); }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    asked_bytes += out.size();
    std::memcpy(out.data(), bytes_.data() + offset, out.size());
  }
  mutable std::uint64_t asked_bytes = 0;

 private:
  Bytes bytes_;
};

TEST(DecodedStorage, GivesTheValuesOfTheKernelsForEveryTypeAndTarget) {
  for (const DTypeInfo& type : all_dtypes()) {
    if (type.kind != DTypeKind::ggml) continue;
    const Tensor blocks = random_blocks(type.dtype, 3, 2);
    for (const DType out : {DType::f32, DType::f16, DType::bf16}) {
      const Tensor values = decoded(blocks, out);
      EXPECT_EQ(values.dtype(), out);
      EXPECT_EQ(values.shape(), blocks.shape());
      Bytes expected(values.nbytes());
      kernels::decode_blocks(type.dtype, whole(blocks), out, expected);
      EXPECT_EQ(whole(values), expected) << type.name << " to " << name(out);
    }
  }
}

TEST(DecodedStorage, GivesTheSameBytesForEveryRange) {
  const Tensor blocks = random_blocks(DType::q4_0, 2, 2);
  const Tensor values = decoded(blocks, DType::f16);
  const Bytes all = whole(values);
  for (std::uint64_t first = 0; first <= all.size(); ++first) {
    for (const std::uint64_t size : {0u, 1u, 3u, 63u, 64u, 65u, 130u}) {
      if (first + size > all.size()) continue;
      const auto begin = all.begin() + static_cast<std::ptrdiff_t>(first);
      ASSERT_EQ(range(values, first, size), Bytes(begin, begin + static_cast<std::ptrdiff_t>(size)))
          << first << " " << size;
    }
  }
}

TEST(DecodedStorage, ReadsOnlyTheBlocksThatARangeTouches) {
  constexpr std::uint64_t kRows = 64, kBlocks = 64;
  const auto storage = std::make_shared<ReadOnlyStorage>(random_bytes(kRows * kBlocks * 144, 3));
  const Tensor blocks(DType::q4_k, Shape{kRows, kBlocks * 256}, storage);
  const Tensor values = decoded(blocks, DType::f32);
  range(values, 1024 * 100 + 8, 4);
  EXPECT_EQ(storage->asked_bytes, 144u);
  storage->asked_bytes = 0;
  range(values, 1024 * 100 - 4, 8);
  EXPECT_EQ(storage->asked_bytes, 288u);
  storage->asked_bytes = 0;
  EXPECT_EQ(whole(values), whole(decoded(blocks.realize(), DType::f32)));
  EXPECT_EQ(storage->asked_bytes, 2 * kRows * kBlocks * 144);
  EXPECT_EQ(values.storage()->granule(), 1024u);
}

TEST(DecodedStorage, DecodesViews) {
  const Tensor blocks = random_blocks(DType::q8_0, 4, 3);
  const Tensor rows = blocks.slice({SliceIndex::range(1, 4, 2)});
  const Bytes all = whole(decoded(blocks, DType::f32));
  const std::size_t row = all.size() / 4;
  Bytes expected(all.begin() + static_cast<std::ptrdiff_t>(row), all.begin() + static_cast<std::ptrdiff_t>(2 * row));
  expected.insert(expected.end(), all.begin() + static_cast<std::ptrdiff_t>(3 * row), all.end());
  EXPECT_EQ(whole(decoded(rows, DType::f32)), expected);
}

TEST(DecodedStorage, MultipliesByAScaleForTheTensorOrForEachIndexOfItsFirstDimension) {
  const Tensor blocks = Tensor::from_bytes(DType::nvfp4, Shape{2, 2, 64}, random_bytes(4 * 36, 5));
  std::vector<float> plain(256);
  decoded(blocks, DType::f32).read(0, std::as_writable_bytes(std::span(plain)));
  const auto scaled = [&](const std::vector<float>& factors) {
    const Tensor scale = Tensor::from_values<float>(DType::f32, Shape{factors.size()}, factors);
    std::vector<float> values(256);
    decoded(blocks, DType::f32, scale).read(0, std::as_writable_bytes(std::span(values)));
    return values;
  };
  for (const std::vector<float>& factors : {std::vector<float>{0.3f}, std::vector<float>{0.3f, -7.0f}}) {
    std::vector<float> expected = plain;
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] *= factors[factors.size() == 1 ? 0 : i / 128];
    EXPECT_EQ(scaled(factors), expected);

    Bytes halves(512);
    kernels::cast(DType::f32, DType::bf16, std::as_bytes(std::span(expected)), halves);
    const Tensor scale = Tensor::from_values<float>(DType::f32, Shape{factors.size()}, factors);
    EXPECT_EQ(whole(decoded(blocks, DType::bf16, scale)), halves);
  }
  EXPECT_ERROR(scaled({1, 2, 3}), Errc::mismatch, "a scale of F32 [3] is none for blocks of shape [2, 2, 64]");
}

TEST(DecodedStorage, CastsTypesThatAreNotBlocks) {
  const Tensor halves = Tensor::from_bytes(DType::f16, Shape{3}, random_bytes(6, 1));
  EXPECT_EQ(decoded(halves, DType::f32).dtype(), DType::f32);
  EXPECT_EQ(decoded(halves, DType::f16).storage(), halves.storage());
  EXPECT_ERROR(decoded(random_blocks(DType::q4_0, 1, 1), DType::f64), Errc::unsupported,
               "Q4_0 cannot be decoded to F64");
}

TEST(DecodedStorage, IsEmptyOrWithoutDataIfItsBlocksAre) {
  EXPECT_EQ(whole(decoded(Tensor::from_bytes(DType::q4_0, Shape{0, 32}, {}), DType::f32)).size(), 0u);
  const Tensor meta(DType::q4_0, Shape{2, 32}, meta_storage(36));
  EXPECT_FALSE(decoded(meta, DType::f32).has_data());
}

TEST(SwappedStorage, SwapsTheBytesOfElementsAndOfTheScalesOfBlocks) {
  const Tensor words = Tensor::from_bytes(DType::i32, Shape{5}, random_bytes(20, 2));
  const Tensor swapped(DType::i32, Shape{5}, swapped_storage(words));
  Bytes expected = whole(words);
  for (std::size_t i = 0; i < 20; i += 4)
    std::reverse(expected.begin() + static_cast<std::ptrdiff_t>(i),
                 expected.begin() + static_cast<std::ptrdiff_t>(i + 4));
  EXPECT_EQ(whole(swapped), expected);
  EXPECT_EQ(range(swapped, 3, 6), Bytes(expected.begin() + 3, expected.begin() + 9));

  for (const DType type : {DType::q8_k, DType::q6_k, DType::iq2_xs, DType::mxfp4}) {
    const Tensor blocks = random_blocks(type, 2, 3);
    Bytes little = whole(blocks);
    kernels::swap_block_scales(type, little);
    const Tensor made(type, blocks.shape(), swapped_storage(blocks));
    EXPECT_EQ(whole(made), little) << name(type);
    EXPECT_EQ(range(made, 5, 60), Bytes(little.begin() + 5, little.begin() + 65)) << name(type);
  }
}

// ggml ignores the sign bit of a scale; the code of NaN means zero, but only without that bit.
TEST(DecodedStorage, ReadsTheScalesOfNvfp4AsGgmlDoes) {
  std::vector<std::byte> block(36, std::byte{0x22});
  block[0] = std::byte{0x7F};
  block[1] = std::byte{0xFF};
  block[2] = std::byte{0xB8};
  block[3] = std::byte{0x38};
  const auto values = Tensor::from_bytes(DType::nvfp4, {64}, block).values<float>();
  EXPECT_EQ(values[0], 0);
  EXPECT_EQ(values[16], 480);
  EXPECT_EQ(values[32], 1);
  EXPECT_EQ(values[48], 1);
}

}  // namespace
}  // namespace ballast
