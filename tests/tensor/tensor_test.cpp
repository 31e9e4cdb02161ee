#include <ballast/tensor.hpp>

#include <gtest/gtest.h>

#include <limits>
#include <numeric>
#include <random>

#include "support/expect_error.hpp"
#include "support/fake_storages.hpp"
#include "support/tensor_values.hpp"

namespace ballast {
namespace {

using test::some_bytes;
using test::values_of;

Tensor counted(Shape shape) {
  std::vector<float> values(shape.numel().value());
  std::iota(values.begin(), values.end(), 0.0f);
  return Tensor::from_values<float>(DType::f32, std::move(shape), values);
}

TEST(Tensor, IsACheapViewThatKeepsItsStorageAlive) {
  Tensor view;
  {
    const Tensor whole = counted({4, 3});
    view = whole.slice(parse_slice("1:3"));
  }
  EXPECT_EQ(values_of(view), (std::vector<float>{3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(view.as<float>()[0], 3.0f);
}

TEST(Tensor, BeginsAsNoTensor) {
  const Tensor none;
  EXPECT_EQ(none.numel(), 0u);
  EXPECT_EQ(none.nbytes(), 0u);
  EXPECT_TRUE(none.bytes().empty());
  EXPECT_EQ(none.realize().nbytes(), 0u);
  EXPECT_EQ(none.to(DType::bf16).numel(), 0u);
  EXPECT_NO_THROW(none.slice(parse_slice("::2")));
}

TEST(Tensor, RefusesToReachOutsideItsStorage) {
  const auto storage = memory_storage(some_bytes(16, 1));
  EXPECT_NO_THROW(Tensor(DType::f32, {4}, storage));
  EXPECT_ERROR(Tensor(DType::f32, {5}, storage), Errc::malformed, "reaches outside its storage of 16 bytes");
  EXPECT_ERROR(Tensor(DType::f32, {4}, storage, 1), Errc::malformed, "outside");
  EXPECT_ERROR(Tensor(DType::f32, {1}, storage, UINT64_MAX), Errc::malformed, "outside");
  EXPECT_ERROR(Tensor(DType::f32, {1ull << 62, 4}, storage), Errc::malformed, "overflow");
  EXPECT_ERROR(Tensor(DType::f32, {2, 2}, Strides{3, 1}, storage), Errc::malformed, "outside");
  EXPECT_ERROR(Tensor(DType::f32, {2}, Strides{-1}, storage), Errc::malformed, "outside");
  EXPECT_NO_THROW(Tensor(DType::f32, {2}, Strides{-1}, storage, 4));
  EXPECT_ERROR(Tensor(DType::f32, {2, 2}, Strides{INT64_MAX, 1}, storage), Errc::malformed, "64 bits");
  EXPECT_ERROR(Tensor(DType::f32, {2}, Strides{1, 1}, storage), Errc::malformed, "rank 1 has 2 strides");
  EXPECT_ERROR(Tensor(DType::f4, {3}, storage), Errc::malformed, "inside a byte");
}

TEST(Tensor, KnowsWhetherAViewIsContiguous) {
  const auto storage = memory_storage(some_bytes(96, 1));
  EXPECT_TRUE(Tensor(DType::f32, {2, 3}, Strides{3, 1}, storage).is_contiguous());
  EXPECT_TRUE(Tensor(DType::f32, {2, 1, 3}, Strides{3, 99, 1}, storage).is_contiguous());
  EXPECT_FALSE(Tensor(DType::f32, {2, 3}, Strides{4, 1}, storage).is_contiguous());
  EXPECT_TRUE(Tensor(DType::f32, {0, 3}, Strides{7, 7}, storage).is_contiguous());
  EXPECT_TRUE(counted({5, 5}).transpose().transpose().is_contiguous());
}

TEST(Tensor, ReadsAnyByteRangeOfAnyView) {
  const Tensor base = counted({6, 5, 4});
  const std::size_t orders[][3] = {{0, 1, 2}, {2, 1, 0}, {1, 2, 0}, {0, 2, 1}};
  for (const auto& order : orders) {
    for (const char* slice : {"...", "1:5", ":, ::2", "::-1, 1:4, ::3", "2, ...", "..., -1", "::-2, ::-1, ::-1"}) {
      const Tensor view = base.permute(order).slice(parse_slice(slice));
      const Tensor whole = view.realize(1);
      const auto expected = whole.bytes();
      for (std::uint64_t first = 0; first < view.nbytes(); first += 7) {
        for (const std::uint64_t size : {1u, 3u, 4u, 9u, 64u}) {
          std::vector<std::byte> out(std::min<std::uint64_t>(size, view.nbytes() - first));
          view.read(first, out);
          ASSERT_TRUE(std::equal(out.begin(), out.end(), expected.begin() + static_cast<std::ptrdiff_t>(first)))
              << slice << first;
        }
      }
    }
  }
}

// The same views of storage without a map are read row by row.
TEST(Tensor, ReadsStridedViewsOfStorageThatIsNotMapped) {
  const auto bytes = some_bytes(100 * 80 * 2, 3);
  const Tensor mapped(DType::u16, {100, 80}, memory_storage(bytes));
  const Tensor remote(DType::u16, {100, 80}, std::make_shared<test::RemoteStorage>(bytes));
  const Tensor decoded(DType::u16, {100, 80}, std::make_shared<test::DecodedStorage>(bytes, 160));
  for (const char* slice : {"10:20, ::3", "::-7, 5:70:2", "..., 3"}) {
    for (const Tensor& other : {remote, decoded}) {
      const Tensor a = mapped.slice(parse_slice(slice)).realize(), b = other.slice(parse_slice(slice)).realize();
      EXPECT_TRUE(std::equal(a.bytes().begin(), a.bytes().end(), b.bytes().begin())) << slice;
    }
  }
  const Tensor a = mapped.transpose().realize(), b = decoded.transpose().realize();
  EXPECT_TRUE(std::equal(a.bytes().begin(), a.bytes().end(), b.bytes().begin()));
}

TEST(Tensor, HasNoBlocksForValuesThatAreNotFinite) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    std::vector<float> values(64, 1.0F);
    values[40] = bad;
    const Tensor encoded = Tensor::from_values<float>(DType::f32, {2, 32}, values).to(DType::q8_0);
    EXPECT_ERROR(encoded.realize(), Errc::unsupported, "cannot be encoded as Q8_0");
  }
}

TEST(Tensor, RefusesACastThatDoesNotFit64Bits) {
  const Tensor huge(DType::f16, {std::uint64_t{1} << 61}, Strides{0}, memory_storage(some_bytes(2, 1)));
  EXPECT_ERROR(huge.to(DType::f64), Errc::malformed, "does not fit 64 bits");
}

TEST(Tensor, SlicesBlocksWholeOrNotAtAll) {
  const Tensor f4(DType::f4, {4, 6}, memory_storage(some_bytes(12, 1)));
  EXPECT_EQ(f4.slice(parse_slice("1:3")).nbytes(), 6u);
  EXPECT_EQ(f4.slice(parse_slice(":, 2:4")).nbytes(), 4u);
  EXPECT_ERROR(f4.slice(parse_slice(":, 1:3")), Errc::unsupported, "inside a block of 2");
  EXPECT_ERROR(f4.slice(parse_slice(":, ::2")), Errc::unsupported, "blocks of 2");
  // These slices have as many elements as a block, but not those of one block.
  EXPECT_ERROR(f4.slice(parse_slice(":2, 0")), Errc::unsupported, "blocks of 2");
  EXPECT_ERROR(f4.slice(parse_slice("0, :3:2")), Errc::unsupported, "blocks of 2");
  EXPECT_ERROR(f4.slice(parse_slice("0, :3")), Errc::unsupported, "ends inside a block of 2");
  EXPECT_ERROR(f4.transpose(), Errc::unsupported, "blocks of 2");
}

TEST(Tensor, GoesThroughAStreamOnceForAViewOfIt) {
  const auto plain = test::some_bytes(256 * 256 * 4, 3);
  const auto deflated = std::make_shared<test::DeflatedStorage>(plain);
  const Tensor view = Tensor(DType::f32, {256, 256}, deflated).transpose();
  const Tensor expected = Tensor::from_bytes(DType::f32, {256, 256}, plain).transpose();
  std::vector<std::byte> got(plain.size()), wanted(plain.size());
  view.read(0, got);
  expected.read(0, wanted);
  EXPECT_EQ(got, wanted);
  EXPECT_EQ(deflated->restarts(), 1u);
}

TEST(Tensor, CastsWhenItIsReadAndInAnyRange) {
  const Tensor half = counted({300}).to(DType::bf16);
  EXPECT_FALSE(half.is_mapped());
  EXPECT_ERROR(half.bytes(), Errc::unsupported, "made when they are read");
  const Tensor whole = half.realize();
  EXPECT_EQ(static_cast<float>(whole.as<bfloat16>()[255]), 255.0f);
  for (std::uint64_t first = 0; first < 600; first += 13) {
    std::vector<std::byte> part(std::min<std::uint64_t>(21, 600 - first));
    half.read(first, part);
    EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.bytes().begin() + static_cast<std::ptrdiff_t>(first)));
  }
  EXPECT_EQ(values_of(counted({4, 4}).transpose().to(DType::f16).to(DType::f32)),
            values_of(counted({4, 4}).transpose()));
  EXPECT_ERROR(counted({2}).to(DType::q4_k), Errc::unsupported, "rows of 2 elements are no whole blocks of Q4_K");
}

TEST(Tensor, CastsStorageThatIsNotMapped) {
  const auto bytes = some_bytes(200'000, 8);
  const Tensor remote(DType::bf16, {100'000}, std::make_shared<test::RemoteStorage>(bytes));
  const Tensor mapped(DType::bf16, {100'000}, memory_storage(bytes));
  const Tensor a = remote.to(DType::f32).realize(), b = mapped.to(DType::f32).realize();
  EXPECT_TRUE(std::equal(a.bytes().begin(), a.bytes().end(), b.bytes().begin()));
}

TEST(Tensor, GivesValuesOnlyAsTheirOwnType) {
  const Tensor tensor = counted({4});
  EXPECT_EQ(tensor.as<float>().size(), 4u);
  EXPECT_ERROR(tensor.as<std::int32_t>(), Errc::mismatch, "dtype F32");
  EXPECT_ERROR(tensor.as<double>(), Errc::mismatch, "dtype F32");
}

TEST(Tensor, SaysThatItIsNotAlignedAndCanAlignItself) {
  const Tensor askew(DType::f32, {3}, memory_storage(some_bytes(16, 1)), 1);
  const auto error = test::error_of([&] { askew.as<float>(); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->hint().text(), "call aligned()");
  const Tensor aligned = askew.aligned();
  EXPECT_EQ(aligned.as<float>().size(), 3u);
  const Tensor straight = counted({3});
  EXPECT_EQ(straight.aligned().storage(), straight.storage()) << "what is aligned is not copied";
}

TEST(Tensor, ReshapesAndReadsBytesAsAnotherDtype) {
  const Tensor tensor = counted({2, 6});
  EXPECT_EQ(values_of(tensor.reshape({3, 4})), values_of(tensor));
  EXPECT_ERROR(tensor.reshape({5}), Errc::invalid_argument, "[2, 6] cannot be reshaped to [5]");
  EXPECT_ERROR(tensor.transpose().reshape({12}), Errc::unsupported, "without a copy");
  EXPECT_EQ(tensor.bitcast(DType::u8).shape(), Shape({2, 24}));
  EXPECT_EQ(tensor.bitcast(DType::f64).shape(), Shape({2, 3}));
  EXPECT_EQ(tensor.bitcast(DType::i32).shape(), Shape({2, 6}));
  EXPECT_ERROR(counted({3}).bitcast(DType::f64), Errc::invalid_argument, "does not fill whole elements");
  EXPECT_ERROR(tensor.permute(std::vector<std::size_t>{0, 0}), Errc::invalid_argument, "permutation");
}

TEST(Tensor, HasAShapeAndNoDataOnTheMetaDevice) {
  const Tensor meta(DType::f32, {1u << 20, 1u << 20}, meta_storage(std::uint64_t{4} << 40));
  EXPECT_FALSE(meta.has_data());
  std::vector<std::byte> out(4);
  EXPECT_ERROR(meta.read(0, out), Errc::unsupported, "no data");
  EXPECT_ERROR(meta.bytes(), Errc::unsupported, "no data");
}

TEST(Tensor, RefusesRangesOutsideItself) {
  std::vector<std::byte> out(5);
  EXPECT_ERROR(counted({1}).read(0, out), Errc::invalid_argument, "of a tensor of 4 bytes");
  EXPECT_ERROR(counted({1}).read(UINT64_MAX, out), Errc::invalid_argument, "of a tensor of 4 bytes");
}

TEST(Slice, ReadsWhatPythonWrites) {
  EXPECT_EQ(parse_slice("").size(), 0u);
  EXPECT_EQ(parse_slice("[0:4, ..., -1, ::2]").size(), 4u);
  EXPECT_EQ(parse_slice("1,").size(), 1u);
  for (const char* bad : {"a", "1:2:3:4", "1::0", "1 2", ",", "1,,2", "0x1", "99999999999999999999", "....", "-"}) {
    EXPECT_ERROR(parse_slice(bad), Errc::invalid_argument, "is no slice");
  }
}

TEST(Slice, RefusesWhatDoesNotFit) {
  const Tensor tensor = counted({2, 3});
  EXPECT_ERROR(tensor.slice(parse_slice("2")), Errc::invalid_argument, "index 2 of a dimension of 2");
  EXPECT_ERROR(tensor.slice(parse_slice("-3")), Errc::invalid_argument, "index -3");
  EXPECT_ERROR(tensor.slice(parse_slice("0,0,0")), Errc::invalid_argument, "3 indices for a tensor of rank 2");
  EXPECT_ERROR(tensor.slice(parse_slice("...,...")), Errc::invalid_argument, "more than one");
}

TEST(Slice, ClampsAsPythonClamps) {
  const Tensor tensor = counted({5});
  const auto at = [&](const char* slice) { return values_of(tensor.slice(parse_slice(slice))); };
  EXPECT_EQ(at("-100:100"), (std::vector<float>{0, 1, 2, 3, 4}));
  EXPECT_EQ(at("3:1"), std::vector<float>{});
  EXPECT_EQ(at("7:9"), std::vector<float>{});
  EXPECT_EQ(at("::-1"), (std::vector<float>{4, 3, 2, 1, 0}));
  EXPECT_EQ(at("100:-100:-2"), (std::vector<float>{4, 2, 0}));
  EXPECT_EQ(at("-2:"), (std::vector<float>{3, 4}));
  EXPECT_EQ(at("::9223372036854775807"), (std::vector<float>{0}));
  EXPECT_EQ(at("::-9223372036854775808"), (std::vector<float>{4}));
  EXPECT_EQ(at("-9223372036854775808:9223372036854775807"), (std::vector<float>{0, 1, 2, 3, 4}));
}

TEST(TensorValues, AreTheNumbersOfAnyNumericTensor) {
  const std::vector<std::int16_t> shorts = {-3, 0, 7};
  const Tensor integers = Tensor::from_values<std::int16_t>(DType::i16, {3}, shorts);
  EXPECT_EQ(integers.values<float>(), (std::vector<float>{-3, 0, 7}));
  EXPECT_EQ(integers.values<double>(), (std::vector<double>{-3, 0, 7}));
  EXPECT_EQ(integers.values<std::int64_t>(), (std::vector<std::int64_t>{-3, 0, 7}));
  const Tensor half = Tensor::from_values<float>(DType::f32, {2}, std::vector<float>{1.5F, -2}).to(DType::bf16);
  EXPECT_EQ(half.values<float>(), (std::vector<float>{1.5F, -2}));
  const Tensor blocks = Tensor::from_values<float>(DType::f32, {1, 32}, std::vector<float>(32, 127)).to(DType::q8_0);
  EXPECT_EQ(blocks.values<float>(), std::vector<float>(32, 127));
  const Tensor matrix = Tensor::from_values<float>(DType::f32, {2, 2}, std::vector<float>{1, 2, 3, 4});
  EXPECT_EQ(matrix.transpose().values<float>(), (std::vector<float>{1, 3, 2, 4}));
  EXPECT_EQ(Tensor().values<float>(), std::vector<float>());
}

TEST(TensorValues, AsIntegersMustBeIntegersThatFit) {
  const std::vector<std::uint64_t> large = {1, 1ULL << 63};
  const Tensor numbers = Tensor::from_values<std::uint64_t>(DType::u64, {2}, large);
  EXPECT_EQ(numbers.values<std::uint64_t>(), large);
  EXPECT_ERROR(numbers.values<std::int64_t>(), Errc::mismatch, "the value at 1 is 9223372036854775808");
  EXPECT_ERROR(Tensor::from_values<float>(DType::f32, {1}, std::vector<float>{1}).values<std::int32_t>(),
               Errc::unsupported, "dtype F32 cannot be read as integers");
  EXPECT_ERROR(Tensor(DType::c64, {1}, meta_storage(8)).values<float>(), Errc::unsupported, "C64");
}

}  // namespace
}  // namespace ballast
