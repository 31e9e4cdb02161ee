#include "tensor/encoded_storage.hpp"

#include <gtest/gtest.h>

#include <random>
#include <thread>
#include <vector>

#include "kernels/ggml/encode.hpp"
#include "support/expect_error.hpp"

namespace ballast {
namespace {

using Bytes = std::vector<std::byte>;
using Floats = std::vector<float>;
using Importance = std::shared_ptr<const Floats>;

Floats random_floats(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> distribution(0, 0.02F);
  Floats values(count);
  for (float& value : values) value = distribution(random);
  return values;
}

Importance random_importance(std::size_t count) {
  Floats weights = random_floats(count, 9);
  for (float& weight : weights) weight = weight * weight;
  return std::make_shared<const Floats>(std::move(weights));
}

Tensor random_tensor(const Shape& shape, unsigned seed = 1) {
  return Tensor::from_values<float>(DType::f32, shape, random_floats(*shape.numel(), seed));
}

Bytes range(const Tensor& tensor, std::uint64_t first, std::uint64_t size) {
  Bytes bytes(size);
  tensor.read(first, bytes);
  return bytes;
}
Bytes whole(const Tensor& tensor) { return range(tensor, 0, tensor.nbytes()); }

Bytes by_kernel(DType type, std::span<const float> values, std::span<const float> importance) {
  Bytes blocks(*bytes_of(type, values.size()));
  kernels::encode_rows(type, values, importance, blocks);
  return blocks;
}

TEST(EncodedStorage, GivesTheBytesOfTheKernelForEveryTypeThatTakesImportance) {
  for (const DTypeInfo& type : all_dtypes()) {
    if (!kernels::takes_importance(type.dtype)) continue;
    const Floats values = random_floats(3 * 768, 1);
    const Importance importance = random_importance(768);
    const Tensor tensor = Tensor::from_values<float>(DType::f32, {3, 768}, values);
    const Tensor blocks = encoded(tensor, type.dtype, importance);
    EXPECT_EQ(blocks.dtype(), type.dtype);
    EXPECT_EQ(blocks.shape(), tensor.shape());
    EXPECT_EQ(whole(blocks), by_kernel(type.dtype, values, *importance)) << type.name;
  }
}

TEST(EncodedStorage, GivesTheSameBytesForEveryRange) {
  // Q4_0 depends on whole rows, IQ4_NL does not.
  for (const DType type : {DType::q4_0, DType::iq4_nl}) {
    const Tensor blocks = encoded(random_tensor({3, 96}), type, random_importance(96));
    const Bytes all = whole(blocks);
    for (std::uint64_t first = 0; first <= all.size(); ++first) {
      for (const std::uint64_t size : {0u, 1u, 17u, 18u, 19u, 54u, 60u, 110u}) {
        if (first + size > all.size()) continue;
        const auto begin = all.begin() + static_cast<std::ptrdiff_t>(first);
        ASSERT_EQ(range(blocks, first, size), Bytes(begin, begin + static_cast<std::ptrdiff_t>(size)))
            << name(type) << " " << first << " " << size;
      }
    }
  }
}

TEST(EncodedStorage, GivesTheSameBytesForManyRangesAtOnce) {
  for (const DType type : {DType::q5_1, DType::q4_k}) {
    const Tensor blocks = encoded(random_tensor({7, 512}), type, random_importance(512));
    const Bytes all = whole(blocks);
    std::mt19937 random(5);
    std::vector<Bytes> parts;
    std::vector<Storage::Range> ranges;
    for (int i = 0; i < 40; ++i) parts.emplace_back(1 + random() % 300);
    for (Bytes& part : parts) ranges.push_back({random() % (all.size() - part.size()), part});
    blocks.read_many(ranges);
    for (const Storage::Range& range : ranges)
      EXPECT_TRUE(
          std::equal(range.out.begin(), range.out.end(), all.begin() + static_cast<std::ptrdiff_t>(range.offset)));
  }
}

TEST(EncodedStorage, GivesEachMatrixOfAStackItsOwnImportance) {
  for (const DType type : {DType::q4_0, DType::q2_k, DType::iq2_xs}) {
    const Floats values = random_floats(3 * 2 * 512, 2);
    const Importance importance = random_importance(3 * 512);
    const Bytes got = whole(encoded(Tensor::from_values<float>(DType::f32, {3, 2, 512}, values), type, importance));
    Bytes want;
    for (std::size_t i = 0; i < 3; ++i) {
      const Bytes matrix =
          by_kernel(type, std::span(values).subspan(i * 1024, 1024), std::span(*importance).subspan(i * 512, 512));
      want.insert(want.end(), matrix.begin(), matrix.end());
    }
    EXPECT_EQ(got, want) << name(type);
    const Importance one = random_importance(512);
    EXPECT_EQ(whole(encoded(Tensor::from_values<float>(DType::f32, {3, 2, 512}, values), type, one)),
              by_kernel(type, values, *one));
  }
}

TEST(EncodedStorage, EncodesLongRows) {
  constexpr std::size_t kRow = 128 << 10;
  const Floats values = random_floats(2 * kRow, 3);
  const Importance importance = random_importance(kRow);
  const Tensor blocks = encoded(Tensor::from_values<float>(DType::f32, {2, kRow}, values), DType::q4_0, importance);
  EXPECT_EQ(whole(blocks), by_kernel(DType::q4_0, values, *importance));
  EXPECT_EQ(blocks.storage()->granule(), kRow / 32 * 18);
}

TEST(EncodedStorage, IsReadByManyThreads) {
  const Tensor blocks = encoded(random_tensor({64, 256}), DType::iq3_s, random_importance(256));
  const Bytes all = whole(blocks);
  Bytes parts(all.size());
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < 4; ++i)
    threads.emplace_back(
        [&, i] { blocks.read(i * all.size() / 4, std::span(parts).subspan(i * all.size() / 4, all.size() / 4)); });
  threads.clear();
  EXPECT_EQ(parts, all);
}

TEST(EncodedStorage, DoesNotUseImportanceForTypesThatDoNotTakeIt) {
  const Tensor tensor = random_tensor({2, 64});
  EXPECT_EQ(whole(encoded(tensor, DType::q8_0, random_importance(64))), whole(encoded(tensor, DType::q8_0)));
}

TEST(EncodedStorage, RefusesImportanceOfAnotherSize) {
  EXPECT_ERROR(encoded(random_tensor({2, 64}), DType::q4_0, random_importance(32)), Errc::mismatch,
               "the importance of 32 elements is none for a tensor of shape [2, 64]");
  EXPECT_ERROR(encoded(random_tensor({2, 64}), DType::q4_0, random_importance(128)), Errc::mismatch,
               "the importance of 128 elements is none for a tensor of shape [2, 64]");
  EXPECT_ERROR(encoded(random_tensor({2, 2, 64}), DType::q4_0, random_importance(192)), Errc::mismatch,
               "the importance of 192 elements is none for a tensor of shape [2, 2, 64]");
  EXPECT_ERROR(encoded(random_tensor({2, 64}), DType::q4_0, random_importance(0)), Errc::mismatch,
               "the importance of 0 elements is none for a tensor of shape [2, 64]");
}

TEST(EncodedStorage, RefusesATypeThatNeedsImportanceIfThereIsNone) {
  EXPECT_ERROR(encoded(random_tensor({1, 256}), DType::iq2_xxs), Errc::unsupported,
               "values are encoded as IQ2_XXS with an importance matrix only");
}

TEST(EncodedStorage, IsEmptyOrWithoutDataIfItsValuesAre) {
  EXPECT_EQ(encoded(random_tensor({0, 256}), DType::iq2_xxs, random_importance(256)).nbytes(), 0u);
  const Tensor meta(DType::f32, Shape{2, 32}, meta_storage(256));
  EXPECT_FALSE(encoded(meta, DType::q4_0, random_importance(32)).has_data());
}

}  // namespace
}  // namespace ballast
