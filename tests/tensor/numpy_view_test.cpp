// Elements as NumPy describes them.
#include <gtest/gtest.h>

#include "support/expect_error.hpp"
#include "tensor/numpy_view.hpp"

namespace ballast {
namespace {

TEST(NumpyType, ReadsCodesWithAndWithoutAnOrder) {
  EXPECT_EQ(numpy_type("<f4").dtype, DType::f32);
  EXPECT_EQ(numpy_type("f4").dtype, DType::f32);
  EXPECT_EQ(numpy_type("=i8").dtype, DType::i64);
  EXPECT_FALSE(numpy_type("=i8").is_big_endian);
  EXPECT_TRUE(numpy_type(">c16").is_big_endian);
  EXPECT_EQ(numpy_type("?").dtype, DType::boolean);
  EXPECT_EQ(numpy_type("|b1").dtype, DType::boolean);
  EXPECT_EQ(numpy_type(">u1").code, "|u1");
  EXPECT_EQ(numpy_type("f4").code, "<f4");
}

TEST(NumpyType, KnowsTypesThatAreNotNumbers) {
  EXPECT_TRUE(numpy_type("O").is_object());
  EXPECT_TRUE(numpy_type("|O8").is_object());
  for (const char* code : {"", "<", "<U4", "|S3", "|V8", "<M8[ns]", "<f3", "f", "<f16", "<<f4", "F4"})
    EXPECT_FALSE(numpy_type(code).dtype) << code;
}

TEST(NumpyView, RefusesDataThatDoNotFit) {
  const StoragePtr eight = memory_storage(std::vector<std::byte>(8));
  EXPECT_EQ(numpy_view(numpy_type("<f4"), {2}, false, eight).numel(), 2u);
  EXPECT_ERROR(numpy_view(numpy_type("<f4"), {3}, false, eight), Errc::malformed, "reaches outside");
  EXPECT_ERROR(numpy_view(numpy_type("<f4"), {3}, true, eight), Errc::malformed, "reaches outside");
  EXPECT_ERROR(numpy_view(numpy_type(">f4"), {3}, false, eight), Errc::malformed, "reaches outside");
  EXPECT_ERROR(numpy_view(numpy_type("<f4"), {std::uint64_t{1} << 62}, false, eight), Errc::malformed,
               "does not fit 64 bits");
  EXPECT_ERROR(numpy_view(numpy_type("<f4"), {std::uint64_t{1} << 40, std::uint64_t{1} << 40}, true, eight),
               Errc::malformed, "does not fit 64 bits");
  EXPECT_ERROR(numpy_view(numpy_type("<f4"), {1}, false, eight, 5), Errc::malformed, "reaches outside");
}

TEST(NumpyView, TakesEmptyArraysOfAnyOrder) {
  for (const char* code : {"<f4", ">f4"}) {
    for (const bool fortran : {false, true})
      EXPECT_EQ(numpy_view(numpy_type(code), {0, 3}, fortran, memory_storage({})).shape(), (Shape{0, 3}));
  }
}

}  // namespace
}  // namespace ballast
