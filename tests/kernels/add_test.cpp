#include "kernels/add.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

namespace ballast::kernels {
namespace {

template <class T>
std::vector<T> sum(DType dtype, std::vector<T> total, const std::vector<T>& more) {
  add(dtype, std::as_writable_bytes(std::span(total)), std::as_bytes(std::span(more)));
  return total;
}

TEST(Add, KnowsEveryNumberThatHasAZero) {
  for (const DTypeInfo& type : all_dtypes()) {
    const bool is_number = type.kind != DTypeKind::bits && type.kind != DTypeKind::quantized &&
                           type.kind != DTypeKind::ggml && type.block_elements == 1 && type.dtype != DType::f8_e8m0;
    EXPECT_EQ(can_add(type.dtype), is_number) << type.name;
  }
}

TEST(Add, WrapsIntegersAndOrsBooleans) {
  EXPECT_EQ(sum<std::int8_t>(DType::i8, {127, -128}, {1, -1}), (std::vector<std::int8_t>{-128, 127}));
  EXPECT_EQ(sum<std::uint16_t>(DType::u16, {65535}, {2}), std::vector<std::uint16_t>{1});
  EXPECT_EQ(sum<std::int64_t>(DType::i64, {INT64_MAX}, {1}), std::vector<std::int64_t>{INT64_MIN});
  EXPECT_EQ(sum<std::uint8_t>(DType::boolean, {0, 1, 0, 1, 0}, {0, 0, 1, 1, 7}),
            (std::vector<std::uint8_t>{0, 1, 1, 1, 1}));
}

TEST(Add, RoundsEachSumToItsOwnType) {
  // 256 + 1 lies half-way between two numbers of BF16, and goes to the even one.
  EXPECT_EQ(sum<std::uint16_t>(DType::bf16, {0x4380, 0x4380}, {0x3F80, 0x4040}),
            (std::vector<std::uint16_t>{0x4380, 0x4382}));
  EXPECT_EQ(sum<std::uint16_t>(DType::f16, {0x7BFF}, {0x7BFF}), std::vector<std::uint16_t>{0x7C00});  // infinity
  EXPECT_EQ(sum<float>(DType::f32, {1e8f}, {1}), std::vector<float>{1e8f});
  EXPECT_TRUE(std::isnan(sum<double>(DType::f64, {INFINITY}, {-INFINITY})[0]));
}

TEST(Add, AddsThePartsOfComplexNumbers) {
  EXPECT_EQ(sum<float>(DType::c64, {1, 2, 3, 4}, {10, 20, 30, 40}), (std::vector<float>{11, 22, 33, 44}));
  EXPECT_EQ(sum<std::uint16_t>(DType::c32, {0x3C00, 0}, {0x3C00, 0x3C00}),
            (std::vector<std::uint16_t>{0x4000, 0x3C00}));
}

TEST(Add, AddsManyNumbersAtAnyAddress) {
  std::vector<std::byte> total(1 + 2 * 1000), more(1 + 2 * 1000);
  for (std::size_t i = 0; i < 1000; ++i) more[1 + 2 * i + 1] = std::byte{0x3C};  // 1 as F16
  for (int times = 0; times < 3; ++times) add(DType::f16, std::span(total).subspan(1), std::span(more).subspan(1));
  EXPECT_EQ(total[2000], std::byte{0x42});  // 3
  EXPECT_EQ(total[2], std::byte{0x42});
}

}  // namespace
}  // namespace ballast::kernels
