// Bytes are changed as they are read: any range of them, whatever elements it cuts.
#include <gtest/gtest.h>

#include "support/fake_storages.hpp"
#include "tensor/transformed_storage.hpp"

namespace ballast {
namespace {

std::vector<std::byte> swapped(const std::vector<std::byte>& bytes, std::size_t width) {
  std::vector<std::byte> all = bytes;
  for (std::size_t i = 0; i < all.size(); i += width)
    std::reverse(all.begin() + static_cast<std::ptrdiff_t>(i), all.begin() + static_cast<std::ptrdiff_t>(i + width));
  return all;
}

TEST(TransformedStorage, GivesAnyRange) {
  for (const std::size_t width : {std::size_t{1}, std::size_t{2}, std::size_t{4}, std::size_t{8}, std::size_t{16}}) {
    const auto bytes = test::some_bytes(48, 3);
    const Tensor source(DType::u8, {48}, memory_storage(bytes));
    const StoragePtr storage = swapped_elements(source, width);
    const auto expected = swapped(bytes, width);
    for (std::size_t first = 0; first <= 48; ++first) {
      for (std::size_t size = 0; size <= 48 - first; ++size) {
        std::vector<std::byte> part(size);
        storage->read(first, part);
        ASSERT_TRUE(std::equal(part.begin(), part.end(), expected.begin() + static_cast<std::ptrdiff_t>(first)))
            << width << " " << first << " " << size;
      }
    }
  }
}

TEST(TransformedStorage, HasThePropertiesOfTheStorageThatItReads) {
  const auto bytes = test::some_bytes(16, 1);
  const auto over = [&](StoragePtr storage) {
    return swapped_elements(Tensor(DType::u8, {16}, std::move(storage)), 4);
  };
  EXPECT_EQ(over(memory_storage(bytes))->size_bytes(), 16u);
  EXPECT_EQ(over(memory_storage(bytes))->granule(), 4u);
  EXPECT_FALSE(over(memory_storage(bytes))->is_sequential());
  EXPECT_TRUE(over(std::make_shared<test::DeflatedStorage>(bytes))->is_sequential());
  EXPECT_FALSE(over(meta_storage(16))->has_data());
  EXPECT_TRUE(over(memory_storage(bytes))->mapped().empty());
  EXPECT_FALSE(over(memory_storage(bytes))->location());
  const StoragePtr prepared = over(std::make_shared<test::PreparedStorage>(bytes));
  prepared->prepare({});
  std::vector<std::byte> out(16);
  prepared->read(0, out);
  EXPECT_EQ(out, swapped(bytes, 4));
}

TEST(TransformedStorage, ReadsAStridedViewInItsOwnOrder) {
  const auto bytes = test::some_bytes(24, 2);
  const Tensor matrix = Tensor(DType::u16, {3, 4}, memory_storage(bytes)).transpose();
  const StoragePtr storage = swapped_elements(matrix, 2);
  std::vector<std::byte> plain(24), out(24);
  matrix.read(0, plain);
  storage->read(0, out);
  EXPECT_EQ(out, swapped(plain, 2));
}

TEST(TransformedStorage, SwapsEachOfTheTwoNumbersOfAComplexNumber) {
  EXPECT_EQ(swapped_bytes(DType::c64), 4u);
  EXPECT_EQ(swapped_bytes(DType::c128), 8u);
  EXPECT_EQ(swapped_bytes(DType::c32), 2u);
  EXPECT_EQ(swapped_bytes(DType::f32), 4u);
  EXPECT_EQ(swapped_bytes(DType::u8), 1u);
}

}  // namespace
}  // namespace ballast
