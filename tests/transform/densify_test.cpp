// Sparse and quantized tensors as dense ones: compared with hashes that torch made and with a plain reference, and
// hostile ones.
#include <gtest/gtest.h>

#include <ballast/densify.hpp>
#include <ballast/hash.hpp>
#include <ballast/open.hpp>
#include <ballast/save.hpp>

#include <bit>
#include <cmath>
#include <numeric>
#include <thread>

#include "builders/temp_dir.hpp"
#include "support/expect_error.hpp"
#include "support/fake_storages.hpp"
#include "support/json_file.hpp"
#include "support/tensor_values.hpp"
#include "support/vectors.hpp"

namespace ballast {
namespace {

using test::values_of;

template <class T>
Tensor tensor_of(DType dtype, Shape shape, const std::vector<T>& values) {
  return Tensor::from_values<T>(dtype, std::move(shape), values);
}

Tensor indices(Shape shape, const std::vector<std::int64_t>& values) {
  return tensor_of(DType::i64, std::move(shape), values);
}

Tensor floats(Shape shape, const std::vector<float>& values) { return tensor_of(DType::f32, std::move(shape), values); }

// A checkpoint with one composite called "t", whose parts are called "t.0", "t.1", ….
Checkpoint composite(std::string layout, Shape shape, const std::vector<Tensor>& parts) {
  Checkpoint checkpoint;
  Composite whole;
  whole.name = "t";
  whole.layout = std::move(layout);
  whole.shape = std::move(shape);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    whole.parts.push_back("t." + std::to_string(i));
    checkpoint.tensors.insert(whole.parts.back(), parts[i]);
  }
  checkpoint.composites.push_back(std::move(whole));
  return checkpoint;
}

std::vector<float> dense_floats(const Checkpoint& checkpoint) { return values_of<float>(densify(checkpoint).at("t")); }

using Floats = std::vector<float>;

TEST(Densify, AddsUpCoordinatesThatComeTwiceInTheOrderOfTheFile) {
  const auto sparse =
      composite("sparse_coo", {2, 3}, {indices({2, 4}, {1, 0, 1, 1, 2, 0, 0, 2}), floats({4}, {1, 2, 3, 0.5f})});
  EXPECT_EQ(dense_floats(sparse), (Floats{2, 0, 0, 3, 0, 1.5f}));

  const auto rounded = composite("sparse_coo", {1}, {indices({1, 3}, {0, 0, 0}), floats({3}, {1e8f, 1, -1e8f})});
  EXPECT_EQ(dense_floats(rounded), Floats{0});
}

TEST(Densify, SpreadsTheRowsOfAHybridTensor) {
  const auto sparse = composite("sparse_coo", {3, 2}, {indices({1, 3}, {2, 0, 2}), floats({3, 2}, {1, 2, 3, 4, 5, 6})});
  EXPECT_EQ(dense_floats(sparse), (Floats{3, 4, 0, 0, 6, 8}));
}

TEST(Densify, MakesANegativeZeroAZeroAsTorchDoes) {
  const auto sparse = composite("sparse_coo", {2}, {indices({1, 1}, {0}), floats({1}, {-0.0f})});
  EXPECT_FALSE(std::signbit(dense_floats(sparse)[0]));
}

TEST(Densify, TakesIndicesWithoutADimensionAsAScalar) {
  EXPECT_EQ(dense_floats(composite("sparse_coo", {}, {indices({0, 2}, {}), floats({2}, {1, 2})})), Floats{3});
}

TEST(Densify, PlacesRowsAndColumnsOfCompressedLayouts) {
  const Floats dense{0, 1, 0, 2, 3, 0};
  EXPECT_EQ(dense_floats(composite("sparse_csr", {2, 3},
                                   {indices({3}, {0, 1, 3}), indices({3}, {1, 0, 1}), floats({3}, {1, 2, 3})})),
            dense);
  EXPECT_EQ(dense_floats(composite("sparse_csc", {2, 3},
                                   {indices({4}, {0, 1, 3, 3}), indices({3}, {1, 0, 1}), floats({3}, {2, 1, 3})})),
            dense);
  const Tensor narrow = tensor_of<std::int32_t>(DType::i32, {3}, {0, 1, 3});
  EXPECT_EQ(dense_floats(composite("sparse_csr", {2, 3}, {narrow, indices({3}, {1, 0, 1}), floats({3}, {1, 2, 3})})),
            dense);
}

TEST(Densify, PlacesBlocksAndTheirDenseDimensions) {
  const Floats dense{0, 0, 1, 2, 0, 0, 3, 4, 5, 6, 0, 0, 7, 8, 0, 0};
  EXPECT_EQ(dense_floats(composite(
                "sparse_bsr", {4, 4},
                {indices({3}, {0, 1, 2}), indices({2}, {1, 0}), floats({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8})})),
            dense);
  EXPECT_EQ(dense_floats(composite(
                "sparse_bsc", {4, 4},
                {indices({3}, {0, 1, 2}), indices({2}, {1, 0}), floats({2, 2, 2}, {5, 6, 7, 8, 1, 2, 3, 4})})),
            dense);
  EXPECT_EQ(dense_floats(composite("sparse_bsr", {2, 2, 2},
                                   {indices({2}, {0, 1}), indices({1}, {1}), floats({1, 2, 1, 2}, {1, 2, 3, 4})})),
            (Floats{0, 0, 1, 2, 0, 0, 3, 4}));
}

TEST(Densify, PlacesBatchesAfterEachOther) {
  EXPECT_EQ(
      dense_floats(composite("sparse_csr", {2, 2, 2},
                             {indices({2, 3}, {0, 1, 1, 0, 0, 1}), indices({2, 1}, {1, 0}), floats({2, 1}, {1, 2})})),
      (Floats{0, 1, 0, 0, 0, 0, 2, 0}));
}

// One value twice at one position, in every dtype that has a sum.
TEST(Densify, AddsInTheDtypeOfTheValues) {
  const auto sum = [](DType dtype, std::vector<std::uint8_t> one) {
    std::vector<std::uint8_t> two = one;
    two.insert(two.end(), one.begin(), one.end());
    const auto bytes = std::as_bytes(std::span(two));
    const auto sparse = composite("sparse_coo", {2}, {indices({1, 2}, {1, 1}), Tensor::from_bytes(dtype, {2}, bytes)});
    std::vector<std::uint8_t> dense(2 * one.size());
    densify(sparse).at("t").read(0, std::as_writable_bytes(std::span(dense)));
    EXPECT_TRUE(std::all_of(dense.begin(), dense.begin() + static_cast<std::ptrdiff_t>(one.size()), [](std::uint8_t b) {
      return b == 0;
    })) << name(dtype);
    return std::vector<std::uint8_t>(dense.begin() + static_cast<std::ptrdiff_t>(one.size()), dense.end());
  };
  using Bytes = std::vector<std::uint8_t>;
  EXPECT_EQ(sum(DType::boolean, {1}), Bytes{1});
  EXPECT_EQ(sum(DType::u8, {200}), Bytes{144});
  EXPECT_EQ(sum(DType::i8, {0x80}), Bytes{0});
  EXPECT_EQ(sum(DType::i16, {0xFF, 0x7F}), (Bytes{0xFE, 0xFF}));
  EXPECT_EQ(sum(DType::u32, {0, 0, 0, 0x80}), (Bytes{0, 0, 0, 0}));
  EXPECT_EQ(sum(DType::i64, {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}),
            (Bytes{0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}));
  EXPECT_EQ(sum(DType::bf16, {0x80, 0x3F}), (Bytes{0x00, 0x40}));  // 1 + 1
  EXPECT_EQ(sum(DType::f16, {0x00, 0x3C}), (Bytes{0x00, 0x40}));   // 1 + 1
  EXPECT_EQ(sum(DType::f8_e4m3, {0x38}), Bytes{0x40});             // 1 + 1
  EXPECT_EQ(sum(DType::c64, {0, 0, 0x80, 0x3F, 0, 0, 0x00, 0x40}), (Bytes{0, 0, 0, 0x40, 0, 0, 0x80, 0x40}));
  EXPECT_EQ(sum(DType::c32, {0x00, 0x3C, 0, 0}), (Bytes{0x00, 0x40, 0, 0}));
}

TEST(Densify, RefusesValuesThatHaveNoZeroOrNoSum) {
  const std::byte one[1] = {};
  for (const DType dtype : {DType::f8_e8m0, DType::bits8, DType::qu8}) {
    EXPECT_ERROR(densify(composite("sparse_coo", {2}, {indices({1, 1}, {1}), Tensor::from_bytes(dtype, {1}, one)})),
                 Errc::unsupported, "which cannot be made dense");
  }
}

// Any range, whole elements or not, in any order, gives the bytes of the whole.
TEST(Densify, ReadsAnyRange) {
  const auto blocks = composite(
      "sparse_bsr", {4, 6},
      {indices({3}, {0, 2, 3}), indices({3}, {2, 0, 1}), floats({3, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12})});
  Checkpoint quantized = composite("quantized", {7}, {tensor_of<std::uint8_t>(DType::qu8, {7}, {1, 2, 3, 4, 5, 6, 7})});
  Checkpoint packed =
      composite("quantized", {4, 2}, {tensor_of<std::uint8_t>(DType::qu4x2, {4, 2}, {0x21, 0x43, 0x65, 0x87})});
  for (const Checkpoint& checkpoint : {blocks, quantized, packed}) {
    const Tensor tensor = densify(checkpoint).at("t");
    std::vector<std::byte> whole(tensor.nbytes());
    tensor.read(0, whole);
    for (std::size_t first = 0; first <= whole.size(); ++first) {
      for (std::size_t size = 0; size <= whole.size() - first; ++size) {
        std::vector<std::byte> part(size);
        tensor.read(first, part);
        ASSERT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + static_cast<std::ptrdiff_t>(first)))
            << first << " " << size;
      }
    }
  }
}

TEST(Densify, ReadsNoIndexBeforeTheFirstByte) {
  const auto sparse = composite("sparse_coo", {2}, {indices({1, 1}, {9}), floats({1}, {1})});
  const Checkpoint dense = densify(sparse);
  EXPECT_EQ(dense.at("t").shape(), (Shape{2}));
  EXPECT_ERROR(dense.at("t").storage()->prepare({}), Errc::malformed, "\"t\" has the index 9 where there are 2");
  EXPECT_ERROR(dense.at("t").realize(), Errc::malformed, "\"t\" has the index 9 where there are 2");
}

// Puts a value at (i * 7919) % n for many i, and the same into a plain array to compare with.
struct Scattered {
  explicit Scattered(std::uint64_t n) : dense(n) {
    for (std::uint64_t i = 0; i < n / 3; ++i) {
      const std::uint64_t at = i * 7919 % n;
      places.push_back(static_cast<std::int64_t>(at));
      values.push_back(static_cast<float>(i) / 8);
      dense[at] += values.back();
    }
  }
  std::vector<std::int64_t> places;
  Floats values, dense;
};

TEST(Densify, ReadsFromStoragesOfEveryKind) {
  const Scattered data(100'000);
  const auto bytes = std::as_bytes(std::span(data.values));
  const std::vector<std::byte> raw(bytes.begin(), bytes.end());
  const std::vector<StoragePtr> storages = {memory_storage(raw), std::make_shared<test::DeflatedStorage>(raw),
                                            std::make_shared<test::DecodedStorage>(raw, 256),
                                            std::make_shared<test::PreparedStorage>(raw)};
  for (const StoragePtr& storage : storages) {
    const std::uint64_t count = data.values.size();
    EXPECT_EQ(dense_floats(composite("sparse_coo", {1000, 100},
                                     {indices({2, count},
                                              [&] {
                                                std::vector<std::int64_t> both;
                                                for (const auto p : data.places) both.push_back(p / 100);
                                                for (const auto p : data.places) both.push_back(p % 100);
                                                return both;
                                              }()),
                                      Tensor(DType::f32, {count}, storage)})),
              data.dense);
  }
}

TEST(Densify, IsReadByManyThreadsAtOnce) {
  const Scattered data(1'000'000);
  const std::uint64_t count = data.values.size();
  const Tensor tensor =
      densify(composite("sparse_coo", {1'000'000}, {indices({1, count}, data.places), floats({count}, data.values)}))
          .at("t");
  Floats dense(data.dense.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      tensor.read(i * 1'000'000, std::as_writable_bytes(std::span(dense)).subspan(i * 1'000'000, 1'000'000));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(dense, data.dense);
}

TEST(Densify, SaysWhichTensorHasPartsThatDoNotGoTogether) {
  const auto refused = [](const char* layout, Shape shape, const std::vector<Tensor>& parts, const char* why) {
    EXPECT_ERROR(densify(composite(layout, std::move(shape), parts)), Errc::malformed, why);
  };
  const Tensor three = indices({3}, {0, 1, 1}), one = indices({1}, {0}), value = floats({1}, {1});
  refused("sparse_coo", {2}, {one, value}, "\"t\" has indices of shape [1] for values of shape [1]");
  refused("sparse_coo", {2}, {indices({1, 2}, {0, 1}), value}, "indices of shape [1, 2] for values of shape [1]");
  refused("sparse_coo", {2}, {indices({2, 1}, {0, 0}), value}, "of 1 dimensions has indices into 2");
  refused("sparse_coo", {2, 3}, {indices({1, 1}, {0}), value}, "of shape [2, 3] cannot have values of shape [1]");
  refused("sparse_coo", {2}, {value}, "of layout sparse_coo has 1 parts");
  refused("sparse_coo", {2}, {floats({1, 1}, {0}), value}, "has indices of dtype F32");
  refused("sparse_coo", {1ull << 40, 1ull << 40}, {indices({2, 1}, {0, 0}), value}, "does not fit 64 bits");
  refused("sparse_csr", {2, 2}, {three, one}, "of layout sparse_csr has 2 parts");
  refused("sparse_csr", {2}, {three, one, value}, "shapes do not go together");
  refused("sparse_csr", {2, 2}, {indices({}, {0}), one, value}, "shapes do not go together");
  refused("sparse_csr", {2, 2}, {three, indices({1, 1}, {0}), value}, "shapes do not go together");
  refused("sparse_csr", {2, 2}, {three, one, floats({2}, {1, 1})}, "shapes do not go together");
  refused("sparse_csr", {2, 2}, {three, one, floats({}, {1})}, "shapes do not go together");
  refused("sparse_csr", {3, 2}, {three, one, value}, "has 3 compressed indices for 3 lines");
  refused("sparse_csr", {2, 2, 2}, {three, one, value}, "cannot have values of shape [1]");
  refused("sparse_bsr", {4, 2}, {three, one, floats({1, 3, 2}, {1, 2, 3, 4, 5, 6})}, "blocks of 3 by 2");
  refused("sparse_bsr", {2, 2}, {three, one, floats({1, 0, 2}, {})}, "blocks of 0 by 2");
  refused("sparse_bsr", {2, 2}, {three, one, value}, "shapes do not go together");
}

TEST(Densify, SaysWhichTensorHasIndicesThatLie) {
  const auto refused = [](const std::vector<std::int64_t>& ends, const std::vector<std::int64_t>& columns,
                          const char* why) {
    const std::uint64_t count = columns.size();
    EXPECT_ERROR(dense_floats(composite(
                     "sparse_csr", {2, 3},
                     {indices({3}, ends), indices({count}, columns), floats({count}, Floats(columns.size(), 1))})),
                 Errc::malformed, why);
  };
  refused({1, 1, 2}, {0, 1}, "do not begin with 0");
  refused({0, 2, 1}, {0, 1}, "go from 2 to 1 of 2");
  refused({0, 1, 3}, {0, 1}, "go from 1 to 3 of 2");
  refused({0, 0, 1}, {0, 1}, "end with 1 of 2");
  refused({0, -1, 2}, {0, 1}, "go from 0 to -1 of 2");
  refused({0, 1, 2}, {0, 3}, "has the index 3 where there are 3");
  refused({0, 1, 2}, {-1, 0}, "has the index -1 where there are 3");
  EXPECT_ERROR(dense_floats(composite("sparse_coo", {2, 3}, {indices({2, 1}, {2, 0}), floats({1}, {1})})),
               Errc::malformed, "\"t\" has the index 2 where there are 2");
}

// Four bytes that claim to be many, each time in another way.
TEST(Densify, RefusesToMakeFarMoreThanTheFileHolds) {
  const std::uint64_t huge = std::uint64_t{1} << 50;
  const Tensor value = floats({1}, {1}), one = indices({1}, {0});
  const auto repeated = [](const Tensor& tensor, const std::vector<std::uint64_t>& shape) {
    return Tensor(tensor.dtype(), Shape(shape), Strides(shape.size(), 0), tensor.storage());
  };
  EXPECT_ERROR(densify(composite("sparse_coo", {huge}, {indices({1, 1}, {0}), value})), Errc::limit,
               "\"t\" would become 4.50 PB");
  EXPECT_ERROR(densify(composite("sparse_coo", {1}, {repeated(one, {1, huge}), repeated(value, {huge})})), Errc::limit,
               "far more than the file holds");
  EXPECT_ERROR(densify(composite("sparse_coo", {}, {indices({0, huge}, {}), repeated(value, {huge})})), Errc::limit,
               "far more than the file holds");
  EXPECT_ERROR(
      densify(composite("sparse_csr", {huge, 0}, {repeated(one, {huge + 1}), indices({0}, {}), floats({0}, {})})),
      Errc::limit, "far more than the file holds");
  EXPECT_ERROR(
      densify(composite("sparse_coo", {1, 1u << 20},
                        {indices({1, 1000}, std::vector<std::int64_t>(1000)), repeated(value, {1000, 1u << 20})})),
      Errc::limit, "far more than the file holds");
  Limits generous;
  generous.max_expansion_bytes = huge * 8;
  EXPECT_EQ(densify(composite("sparse_coo", {huge}, {indices({1, 1}, {0}), value}), generous).at("t").numel(), huge);
}

TEST(Densify, GivesATensorWithoutDataIfAPartHasNone) {
  const Tensor meta(DType::f32, {1}, meta_storage(4));
  const Checkpoint dense = densify(composite("sparse_coo", {2}, {indices({1, 1}, {0}), meta}));
  EXPECT_FALSE(dense.at("t").has_data());
}

TEST(Densify, GivesEmptyTensorsWithoutReadingAnything) {
  const Checkpoint dense = densify(composite("sparse_coo", {0, 4}, {indices({2, 0}, {}), floats({0}, {})}));
  EXPECT_EQ(dense.at("t").shape(), (Shape{0, 4}));
  EXPECT_EQ(dense_floats(composite("sparse_coo", {3}, {indices({1, 0}, {}), floats({0}, {})})), (Floats{0, 0, 0}));
}

Checkpoint quantized(const Tensor& integers, double scale, std::int64_t zero_point) {
  Checkpoint checkpoint = composite("quantized", integers.shape(), {integers});
  checkpoint.composites[0].scale = scale;
  checkpoint.composites[0].zero_point = zero_point;
  return checkpoint;
}

Checkpoint quantized(const Tensor& integers, std::size_t axis, const Tensor& scales, const Tensor& zero_points) {
  Checkpoint checkpoint = composite("quantized", integers.shape(), {integers, scales, zero_points});
  checkpoint.composites[0].axis = axis;
  return checkpoint;
}

TEST(Densify, MakesRealNumbersOfEveryQuantizedType) {
  EXPECT_EQ(dense_floats(quantized(tensor_of<std::int8_t>(DType::qi8, {3}, {-128, 0, 127}), 0.5, 2)),
            (Floats{-65, -1, 62.5f}));
  EXPECT_EQ(dense_floats(quantized(tensor_of<std::uint8_t>(DType::qu8, {2}, {0, 255}), 2, 128)), (Floats{-256, 254}));
  EXPECT_EQ(dense_floats(quantized(tensor_of<std::int32_t>(DType::qi32, {2}, {INT32_MIN, INT32_MAX}), 1, INT32_MAX)),
            (Floats{-4294967295.0f, 0}));
  EXPECT_EQ(dense_floats(quantized(tensor_of<std::uint8_t>(DType::qu4x2, {4}, {0x21, 0xF3}), 1, 0)),
            (Floats{1, 2, 3, 15}));
  EXPECT_EQ(dense_floats(quantized(tensor_of<std::uint8_t>(DType::qu2x4, {4}, {0b11'10'01'00}), 1, 0)),
            (Floats{0, 1, 2, 3}));
}

TEST(Densify, TakesTheScaleOfEachChannel) {
  const Tensor integers = tensor_of<std::int8_t>(DType::qi8, {2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor two = tensor_of<double>(DType::f64, {2}, {1, 10}),
               three = tensor_of<double>(DType::f64, {3}, {1, 10, 100});
  EXPECT_EQ(dense_floats(quantized(integers, 0, two, indices({2}, {0, 1}))), (Floats{1, 2, 3, 30, 40, 50}));
  EXPECT_EQ(dense_floats(quantized(integers, 1, three, indices({3}, {0, 0, 1}))), (Floats{1, 20, 200, 4, 50, 500}));
  EXPECT_EQ(dense_floats(quantized(integers, 0, floats({2}, {1, 10}), floats({2}, {0.5f, 0}))),
            (Floats{0.5f, 1.5f, 2.5f, 40, 50, 60}));
}

TEST(Densify, RefusesQuantizedPartsThatDoNotGoTogether) {
  const Tensor integers = tensor_of<std::int8_t>(DType::qi8, {2}, {1, 2});
  const Tensor one = floats({1}, {1});
  EXPECT_ERROR(densify(quantized(integers, 0, one, one)), Errc::malformed, "\"t\" has 1 scales or zero points for 2");
  EXPECT_ERROR(densify(quantized(integers, 1, one, one)), Errc::malformed, "\"t\" of shape [2] has no axis 1");
  EXPECT_ERROR(densify(quantized(one, 1, 0)), Errc::malformed, "\"t\" is made of F32");
  EXPECT_ERROR(densify(quantized(integers, 1, std::int64_t{1} << 40)), Errc::malformed, "does not fit 32 bits");
  Checkpoint without_scales = quantized(integers, 1, 0);
  without_scales.composites[0].axis = 0;
  EXPECT_ERROR(densify(without_scales), Errc::malformed, "\"t\" has 1 parts");
}

TEST(Densify, PutsTheDenseTensorWhereItsFirstPartWas) {
  Checkpoint checkpoint = composite("sparse_coo", {1}, {indices({1, 1}, {0}), floats({1}, {1})});
  StateDict tensors;
  tensors.insert("a", floats({1}, {1}));
  for (const auto& [name, tensor] : checkpoint.tensors) tensors.insert(name, tensor);
  tensors.insert("b", floats({1}, {2}));
  checkpoint.tensors = tensors;
  const Checkpoint dense = densify(checkpoint);
  ASSERT_EQ(dense.size(), 3u);
  EXPECT_EQ(dense.tensors[1].name, "t");
  EXPECT_TRUE(dense.composites.empty());
  EXPECT_TRUE(dense.notes.empty());
}

TEST(Densify, GivesAnotherNameIfItsOwnIsTaken) {
  Checkpoint checkpoint = composite("sparse_coo", {1}, {indices({1, 1}, {0}), floats({1}, {1})});
  checkpoint.tensors.insert("t", floats({1}, {7}));
  checkpoint.tensors.insert("t~2", floats({1}, {8}));
  const Checkpoint dense = densify(checkpoint);
  EXPECT_EQ(values_of<float>(dense.at("t~3")), Floats{1});
  ASSERT_EQ(dense.notes.size(), 1u);
  EXPECT_EQ(dense.notes[0].kind, Note::Kind::remark);
}

TEST(Densify, LeavesNestedTensorsAndIncompleteOnesAsTheyAre) {
  const Checkpoint nested = densify(composite("nested", {}, {floats({1}, {1}), floats({2}, {1, 2})}));
  EXPECT_EQ(nested.size(), 2u);
  EXPECT_EQ(nested.composites.size(), 1u);
  Checkpoint checkpoint = composite("sparse_coo", {1}, {indices({1, 1}, {0}), floats({1}, {1})});
  StateDict less;
  less.insert("t.1", checkpoint.at("t.1"));
  checkpoint.tensors = less;
  EXPECT_TRUE(densify(checkpoint).contains("t.1"));
}

TEST(Densify, ForgetsAliasesOfPartsThatAreGone) {
  Checkpoint checkpoint = composite("sparse_coo", {1}, {indices({1, 1}, {0}), floats({1}, {1})});
  checkpoint.tensors.insert("other", checkpoint.at("t.1"));
  checkpoint.aliases["other"] = "t.1";
  checkpoint.metadata["other"] = "t.1";
  const Checkpoint dense = densify(checkpoint);
  EXPECT_TRUE(dense.contains("other"));
  EXPECT_TRUE(dense.aliases.empty());
  EXPECT_TRUE(dense.metadata.empty());
}

// A part that several composites share goes into each of them.
TEST(Densify, LetsTwoTensorsShareAPart) {
  Checkpoint checkpoint = composite("sparse_coo", {2}, {indices({1, 1}, {0}), floats({1}, {1})});
  for (int i = 0; i < 2000; ++i) checkpoint.composites.push_back(checkpoint.composites[0]);
  EXPECT_EQ(densify(checkpoint).size(), 2001u);
}

TEST(Densify, IsSavedLikeAnyOtherTensor) {
  const test::TempDir dir;
  const Scattered data(1'000'000);
  const std::uint64_t count = data.values.size();
  const Checkpoint dense = densify(composite("sparse_coo", {1000, 1000},
                                             {indices({2, count},
                                                      [&] {
                                                        std::vector<std::int64_t> both;
                                                        for (const auto p : data.places) both.push_back(p / 1000);
                                                        for (const auto p : data.places) both.push_back(p % 1000);
                                                        return both;
                                                      }()),
                                              floats({count}, data.values)}));
  save(dense, dir / "x.safetensors", {.threads = 3});
  EXPECT_EQ(values_of<float>(open(dir / "x.safetensors").at("t")), data.dense);
}

TEST(Densify, HasTheBitsOfTorch) {
  std::size_t compared = 0;
  for (const char* file : {"sparse.pt", "sparse_legacy.pt", "quantized.pt", "quantized_legacy.pt",
                           "quantized_float_qparams.pt", "quantized_quint2x4.pt", "quantized_quint4x2.pt"}) {
    SCOPED_TRACE(file);
    const std::string path = test::vector_path(std::string("torch2/") + file);
    const Json expected = test::read_json(path + ".expected.json");
    std::map<std::string, std::string> hashes;
    const Checkpoint dense = densify(open(path));
    for (const auto& tensor : hash(dense).tensors) hashes.emplace(tensor.name, tensor.sha256.value_or(""));
    for (const auto& [list, key] :
         {std::pair("sparse", "dense_sha256"), std::pair("quantized", "dequantized_sha256")}) {
      const Json* entries = expected.find(list);
      if (entries == nullptr) continue;
      for (const Json& entry : entries->list()) {
        const std::string& name = entry.at("name").text();
        EXPECT_EQ(hashes[name], entry.at(key).text()) << name;
        ++compared;
      }
    }
    EXPECT_TRUE(dense.composites.empty());
  }
  EXPECT_EQ(compared, 26u);
}

}  // namespace
}  // namespace ballast
