#include <ballast/dtype.hpp>

#include <complex>
#include <cstddef>
#include <limits>
#include <set>
#include <string>

#include <gtest/gtest.h>

namespace ballast {
namespace {

TEST(DType, IsFoundByEveryNameOfTheTableAndItsInfoIsItsOwn) {
  for (const DTypeInfo& type : all_dtypes()) {
    EXPECT_EQ(dtype_from_name(type.name), type.dtype) << type.name;
    EXPECT_EQ(info(type.dtype).name, type.name);
    EXPECT_EQ(name(type.dtype), type.name);
  }
}

TEST(DType, NamesAndForeignNamesAreUnique) {
  std::set<std::string_view> names, torch_names, numpy_names;
  std::set<int> ggml_ids;
  for (const DTypeInfo& type : all_dtypes()) {
    EXPECT_TRUE(names.insert(type.name).second) << type.name;
    EXPECT_TRUE(type.torch_name.empty() || torch_names.insert(type.torch_name).second) << type.name;
    EXPECT_TRUE(type.numpy_name.empty() || numpy_names.insert(type.numpy_name).second) << type.name;
    EXPECT_TRUE(type.ggml_id < 0 || ggml_ids.insert(type.ggml_id).second) << type.name;
  }
}

TEST(DType, IsNotFoundByAnyOtherName) {
  for (const char* wrong : {"", "F", "f32", "F32 ", " F32", "F3", "F320", "FLOAT32", "float32", "Q4_2", "I4", "BOOLEAN",
                            "F8_E4M3FN", "F8_E4M3FNUZZ", "a much longer name than any dtype has"}) {
    EXPECT_EQ(dtype_from_name(wrong), std::nullopt) << wrong;
  }
  EXPECT_EQ(dtype_from_name(std::string_view("F32\0", 4)), std::nullopt);
}

TEST(DType, IsNotFoundByANameWithOneByteChangedAddedOrRemoved) {
  for (const DTypeInfo& type : all_dtypes()) {
    const std::string name(type.name);
    for (std::size_t i = 0; i < name.size(); ++i) {
      std::string changed = name;
      changed[i] = '?';
      EXPECT_EQ(dtype_from_name(changed), std::nullopt) << changed;
    }
    EXPECT_EQ(dtype_from_name(name + "?"), std::nullopt);
    EXPECT_EQ(dtype_from_name("?" + name), std::nullopt);
  }
}

TEST(DType, IsUnderstoodAsPeopleTypeIt) {
  for (const DTypeInfo& type : all_dtypes()) {
    std::string lower(type.name);
    for (char& c : lower) c = 'A' <= c && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    EXPECT_EQ(parse_dtype(type.name), type.dtype) << type.name;
    EXPECT_EQ(parse_dtype(lower), type.dtype) << lower;
    if (type.torch_name.empty()) continue;
    EXPECT_EQ(parse_dtype(type.torch_name), type.dtype) << type.torch_name;
    EXPECT_EQ(parse_dtype("torch." + std::string(type.torch_name)), type.dtype) << type.torch_name;
    if (!type.numpy_name.empty()) {
      EXPECT_EQ(parse_dtype(type.numpy_name), type.dtype) << type.numpy_name;
    }
  }
  struct Typed {
    const char* text;
    DType dtype;
  };
  for (const auto& [text, dtype] :
       {Typed{"half", DType::f16}, Typed{"torch.half", DType::f16}, Typed{"fp16", DType::f16},
        Typed{"FP32", DType::f32}, Typed{"Float32", DType::f32}, Typed{"float", DType::f32},
        Typed{"double", DType::f64}, Typed{"np.float64", DType::f64}, Typed{"fp8", DType::f8_e4m3},
        Typed{"float8_e4m3fn", DType::f8_e4m3}, Typed{"e5m2", DType::f8_e5m2}, Typed{"fp8_e5m2", DType::f8_e5m2}})
    EXPECT_EQ(parse_dtype(text), dtype) << text;
  for (const char* wrong : {"", "torch.", "f33", "floaty", "f32 ", "fp4x"}) EXPECT_EQ(parse_dtype(wrong), std::nullopt);
}

TEST(DType, SafetensorsHasTwentyTwoOfThemInItsOwnOrder) {
  const char* expected[] = {"BOOL",    "F4",          "F6_E2M3",     "F6_E3M2", "U8",  "I8",  "F8_E5M2", "F8_E4M3",
                            "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ", "I16",     "U16", "F16", "BF16",    "I32",
                            "U32",     "F32",         "C64",         "F64",     "I64", "U64"};
  std::size_t next = 0;
  for (const DTypeInfo& type : all_dtypes()) {
    if (!type.in_safetensors) continue;
    ASSERT_LT(next, std::size(expected));
    EXPECT_EQ(type.name, expected[next++]);
  }
  EXPECT_EQ(next, std::size(expected));
}

TEST(DType, CountsTheBytesOfWholeBlocks) {
  EXPECT_EQ(bytes_of(DType::f32, 3), 12u);
  EXPECT_EQ(bytes_of(DType::c128, 2), 32u);
  EXPECT_EQ(bytes_of(DType::f4, 8), 4u);
  EXPECT_EQ(bytes_of(DType::f6_e3m2, 8), 6u);
  EXPECT_EQ(bytes_of(DType::qu4x2, 6), 3u);
  EXPECT_EQ(bytes_of(DType::qu2x4, 8), 2u);
  EXPECT_EQ(bytes_of(DType::bits16, 3), 6u);
  EXPECT_EQ(bytes_of(DType::q4_k, 512), 288u);
  for (const DTypeInfo& type : all_dtypes()) EXPECT_EQ(bytes_of(type.dtype, 0), 0u);
}

TEST(DType, HasNoBytesForACountThatEndsInsideABlock) {
  EXPECT_EQ(bytes_of(DType::f4, 7), std::nullopt);
  EXPECT_EQ(bytes_of(DType::f6_e2m3, 6), std::nullopt);
  EXPECT_EQ(bytes_of(DType::q8_0, 31), std::nullopt);
}

TEST(DType, HasNoBytesForACountThatOverflows) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ(bytes_of(DType::u8, kMost), kMost);
  EXPECT_EQ(bytes_of(DType::f32, kMost / 4), kMost - 3);
  EXPECT_EQ(bytes_of(DType::f32, kMost / 4 + 1), std::nullopt);
  EXPECT_EQ(bytes_of(DType::f4, kMost - 1), kMost / 2);
}

TEST(DType, SaysWhichCppTypeItStores) {
  EXPECT_TRUE(stores<float>(DType::f32));
  EXPECT_FALSE(stores<float>(DType::i32));
  EXPECT_TRUE(stores<double>(DType::f64));
  EXPECT_TRUE(stores<bool>(DType::boolean));
  EXPECT_TRUE(stores<std::int32_t>(DType::qi32));
  EXPECT_TRUE(stores<std::uint16_t>(DType::u16));
  EXPECT_FALSE(stores<std::uint16_t>(DType::f16));
  EXPECT_TRUE(stores<std::complex<float>>(DType::c64));
  EXPECT_TRUE(stores<std::complex<double>>(DType::c128));
  EXPECT_TRUE(stores<std::byte>(DType::f8_e4m3));
  EXPECT_FALSE(stores<std::byte>(DType::f4));
}

}  // namespace
}  // namespace ballast
