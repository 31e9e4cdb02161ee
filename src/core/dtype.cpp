#include <ballast/dtype.hpp>
#include <ballast/float16.hpp>

#include <algorithm>
#include <array>
#include <complex>
#include <cstddef>

#include "core/checked.hpp"

namespace ballast {
namespace {

using Kind = DTypeKind;
using D = DType;

}  // namespace

// clang-format off
constexpr DTypeInfo detail::dtype_table[] = {
  // dtype          name           kind                elements bytes  safetensors torch              numpy   ggml
  {D::boolean,     "BOOL",        Kind::boolean,            1,   1, true,  "bool",             "|b1",  -1},
  {D::f4,          "F4",          Kind::floating,           2,   1, true,  "float4_e2m1fn_x2", "",     -1},
  {D::f6_e2m3,     "F6_E2M3",     Kind::floating,           4,   3, true,  "",                 "",     -1},
  {D::f6_e3m2,     "F6_E3M2",     Kind::floating,           4,   3, true,  "",                 "",     -1},
  {D::u8,          "U8",          Kind::unsigned_integer,   1,   1, true,  "uint8",            "|u1",  -1},
  {D::i8,          "I8",          Kind::signed_integer,     1,   1, true,  "int8",             "|i1",  24},
  {D::f8_e5m2,     "F8_E5M2",     Kind::floating,           1,   1, true,  "float8_e5m2",      "",     -1},
  {D::f8_e4m3,     "F8_E4M3",     Kind::floating,           1,   1, true,  "float8_e4m3fn",    "",     -1},
  {D::f8_e8m0,     "F8_E8M0",     Kind::floating,           1,   1, true,  "float8_e8m0fnu",   "",     -1},
  {D::f8_e4m3fnuz, "F8_E4M3FNUZ", Kind::floating,           1,   1, true,  "float8_e4m3fnuz",  "",     -1},
  {D::f8_e5m2fnuz, "F8_E5M2FNUZ", Kind::floating,           1,   1, true,  "float8_e5m2fnuz",  "",     -1},
  {D::i16,         "I16",         Kind::signed_integer,     1,   2, true,  "int16",            "<i2",  25},
  {D::u16,         "U16",         Kind::unsigned_integer,   1,   2, true,  "uint16",           "<u2",  -1},
  {D::f16,         "F16",         Kind::floating,           1,   2, true,  "float16",          "<f2",   1},
  {D::bf16,        "BF16",        Kind::floating,           1,   2, true,  "bfloat16",         "",     30},
  {D::i32,         "I32",         Kind::signed_integer,     1,   4, true,  "int32",            "<i4",  26},
  {D::u32,         "U32",         Kind::unsigned_integer,   1,   4, true,  "uint32",           "<u4",  -1},
  {D::f32,         "F32",         Kind::floating,           1,   4, true,  "float32",          "<f4",   0},
  {D::c64,         "C64",         Kind::complex,            1,   8, true,  "complex64",        "<c8",  -1},
  {D::f64,         "F64",         Kind::floating,           1,   8, true,  "float64",          "<f8",  28},
  {D::i64,         "I64",         Kind::signed_integer,     1,   8, true,  "int64",            "<i8",  27},
  {D::u64,         "U64",         Kind::unsigned_integer,   1,   8, true,  "uint64",           "<u8",  -1},

  {D::c32,         "C32",         Kind::complex,            1,   4, false, "complex32",        "",     -1},
  {D::c128,        "C128",        Kind::complex,            1,  16, false, "complex128",       "<c16", -1},
  {D::bc32,        "BC32",        Kind::complex,            1,   4, false, "bcomplex32",       "",     -1},
  // The shape of a bits tensor counts whole items, however many fields torch sees in each.
  {D::bits8,       "BITS8",       Kind::bits,               1,   1, false, "bits8",            "",     -1},
  {D::bits16,      "BITS16",      Kind::bits,               1,   2, false, "bits16",           "",     -1},
  {D::bits1x8,     "BITS1X8",     Kind::bits,               1,   1, false, "bits1x8",          "",     -1},
  {D::bits2x4,     "BITS2X4",     Kind::bits,               1,   1, false, "bits2x4",          "",     -1},
  {D::bits4x2,     "BITS4X2",     Kind::bits,               1,   1, false, "bits4x2",          "",     -1},
  {D::qi8,         "QI8",         Kind::quantized,          1,   1, false, "qint8",            "",     -1},
  {D::qu8,         "QU8",         Kind::quantized,          1,   1, false, "quint8",           "",     -1},
  {D::qi32,        "QI32",        Kind::quantized,          1,   4, false, "qint32",           "",     -1},
  {D::qu4x2,       "QU4X2",       Kind::quantized,          2,   1, false, "quint4x2",         "",     -1},
  {D::qu2x4,       "QU2X4",       Kind::quantized,          4,   1, false, "quint2x4",         "",     -1},

  {D::q4_0,        "Q4_0",        Kind::ggml,              32,  18, false, "",                 "",      2},
  {D::q4_1,        "Q4_1",        Kind::ggml,              32,  20, false, "",                 "",      3},
  {D::q5_0,        "Q5_0",        Kind::ggml,              32,  22, false, "",                 "",      6},
  {D::q5_1,        "Q5_1",        Kind::ggml,              32,  24, false, "",                 "",      7},
  {D::q8_0,        "Q8_0",        Kind::ggml,              32,  34, false, "",                 "",      8},
  {D::q8_1,        "Q8_1",        Kind::ggml,              32,  36, false, "",                 "",      9},
  {D::q2_k,        "Q2_K",        Kind::ggml,             256,  84, false, "",                 "",     10},
  {D::q3_k,        "Q3_K",        Kind::ggml,             256, 110, false, "",                 "",     11},
  {D::q4_k,        "Q4_K",        Kind::ggml,             256, 144, false, "",                 "",     12},
  {D::q5_k,        "Q5_K",        Kind::ggml,             256, 176, false, "",                 "",     13},
  {D::q6_k,        "Q6_K",        Kind::ggml,             256, 210, false, "",                 "",     14},
  {D::q8_k,        "Q8_K",        Kind::ggml,             256, 292, false, "",                 "",     15},
  {D::iq2_xxs,     "IQ2_XXS",     Kind::ggml,             256,  66, false, "",                 "",     16},
  {D::iq2_xs,      "IQ2_XS",      Kind::ggml,             256,  74, false, "",                 "",     17},
  {D::iq3_xxs,     "IQ3_XXS",     Kind::ggml,             256,  98, false, "",                 "",     18},
  {D::iq1_s,       "IQ1_S",       Kind::ggml,             256,  50, false, "",                 "",     19},
  {D::iq4_nl,      "IQ4_NL",      Kind::ggml,              32,  18, false, "",                 "",     20},
  {D::iq3_s,       "IQ3_S",       Kind::ggml,             256, 110, false, "",                 "",     21},
  {D::iq2_s,       "IQ2_S",       Kind::ggml,             256,  82, false, "",                 "",     22},
  {D::iq4_xs,      "IQ4_XS",      Kind::ggml,             256, 136, false, "",                 "",     23},
  {D::iq1_m,       "IQ1_M",       Kind::ggml,             256,  56, false, "",                 "",     29},
  {D::tq1_0,       "TQ1_0",       Kind::ggml,             256,  54, false, "",                 "",     34},
  {D::tq2_0,       "TQ2_0",       Kind::ggml,             256,  66, false, "",                 "",     35},
  {D::mxfp4,       "MXFP4",       Kind::ggml,              32,  17, false, "",                 "",     39},
  {D::nvfp4,       "NVFP4",       Kind::ggml,              64,  36, false, "",                 "",     40},
  {D::q1_0,        "Q1_0",        Kind::ggml,             128,  18, false, "",                 "",     41},
  {D::q2_0,        "Q2_0",        Kind::ggml,              64,  18, false, "",                 "",     42},
};
// clang-format on

namespace {

constexpr std::span kTable(detail::dtype_table);

constexpr bool in_order_of_the_enum() {
  for (std::size_t i = 0; i < std::size(kTable); ++i) {
    if (static_cast<std::size_t>(kTable[i].dtype) != i) return false;
  }
  return true;
}
static_assert(in_order_of_the_enum(), "info() indexes the table by the enum's value");
static_assert(std::size(kTable) == static_cast<std::size_t>(D::q2_0) + 1);

// Names are looked up once a tensor, so the lookup is a perfect hash: a few characters that tell all names apart, times
// a multiplier that the compiler finds.
constexpr std::size_t kHashBits = 10;
constexpr std::uint8_t kNoEntry = 0xFF;

constexpr std::size_t hash_slot(std::string_view name, std::uint64_t multiplier) {
  const std::size_t last = name.size() - 1;
  const auto byte = [&](std::size_t i) { return std::uint64_t{static_cast<std::uint8_t>(name[std::min(i, last)])}; };
  const std::uint64_t key = byte(0) | byte(1) << 8 | byte(2) << 16 | byte(4) << 24 | byte(last) << 32 | last << 40;
  return static_cast<std::size_t>((key * multiplier) >> (64 - kHashBits));
}

struct NameIndex {
  std::uint64_t multiplier = 0;
  std::array<std::uint8_t, std::size_t{1} << kHashBits> slots{};
};

constexpr bool fill(NameIndex& index) {
  index.slots.fill(kNoEntry);
  for (std::size_t i = 0; i < std::size(kTable); ++i) {
    std::uint8_t& slot = index.slots[hash_slot(kTable[i].name, index.multiplier)];
    if (slot != kNoEntry) return false;
    slot = static_cast<std::uint8_t>(i);
  }
  return true;
}

constexpr NameIndex find_perfect_hash() {
  NameIndex index;
  index.multiplier = 0x9E3779B97F4A7C15;
  while (!fill(index)) index.multiplier = index.multiplier * 6364136223846793005 + 1442695040888963407;
  return index;
}

constexpr NameIndex kNames = find_perfect_hash();

}  // namespace

namespace {

// Spellings of torch, NumPy, C and the tools around them that are not in the table above.
struct Spelling {
  std::string_view text;
  D dtype;
};
constexpr Spelling kSpellings[] = {
    {"half", D::f16},
    {"fp16", D::f16},
    {"float", D::f32},
    {"fp32", D::f32},
    {"single", D::f32},
    {"double", D::f64},
    {"fp64", D::f64},
    {"bfloat", D::bf16},
    {"fp8", D::f8_e4m3},
    {"float8", D::f8_e4m3},
    {"f8", D::f8_e4m3},
    {"e4m3", D::f8_e4m3},
    {"e4m3fn", D::f8_e4m3},
    {"fp8_e4m3", D::f8_e4m3},
    {"fp8_e4m3fn", D::f8_e4m3},
    {"f8_e4m3fn", D::f8_e4m3},
    {"float8_e4m3", D::f8_e4m3},
    {"e5m2", D::f8_e5m2},
    {"fp8_e5m2", D::f8_e5m2},
    {"e4m3fnuz", D::f8_e4m3fnuz},
    {"fp8_e4m3fnuz", D::f8_e4m3fnuz},
    {"e5m2fnuz", D::f8_e5m2fnuz},
    {"fp8_e5m2fnuz", D::f8_e5m2fnuz},
    {"char", D::i8},
    {"byte", D::u8},
    {"short", D::i16},
    {"int", D::i32},
    {"long", D::i64},
    {"boolean", D::boolean},
    {"cfloat", D::c64},
    {"cdouble", D::c128},
    {"chalf", D::c32},
    {"complex", D::c64},
};

}  // namespace

std::span<const DTypeInfo> all_dtypes() noexcept { return kTable; }

std::optional<DType> dtype_from_name(std::string_view name) noexcept {
  if (name.empty()) return std::nullopt;
  const std::uint8_t entry = kNames.slots[hash_slot(name, kNames.multiplier)];
  if (entry == kNoEntry || kTable[entry].name != name) return std::nullopt;
  return kTable[entry].dtype;
}

std::optional<DType> parse_dtype(std::string_view text) {
  constexpr std::string_view kPrefixes[] = {"torch.", "np.", "numpy.", "jnp.", "ml_dtypes."};
  for (const std::string_view prefix : kPrefixes) {
    if (text.starts_with(prefix)) text.remove_prefix(prefix.size());
  }
  const auto is_same = [&](std::string_view name) {
    constexpr auto upper = [](char c) { return 'a' <= c && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; };
    return !name.empty() && std::ranges::equal(text, name, {}, upper, upper);
  };
  for (const DTypeInfo& dtype : kTable) {
    // NumPy's codes differ from other names by their case alone: "<f4" is NumPy's, and "f4", without the order of
    // bytes, means F4.
    if (is_same(dtype.name) || is_same(dtype.torch_name) || (!dtype.numpy_name.empty() && text == dtype.numpy_name))
      return dtype.dtype;
  }
  for (const Spelling& other : kSpellings) {
    if (is_same(other.text)) return other.dtype;
  }
  return std::nullopt;
}

template <>
bool stores<bool>(DType dtype) noexcept {
  return dtype == D::boolean;
}
template <>
bool stores<std::byte>(DType dtype) noexcept {
  return info(dtype).block_elements == 1 && info(dtype).block_bytes == 1;
}
template <>
bool stores<std::int8_t>(DType dtype) noexcept {
  return dtype == D::i8 || dtype == D::qi8;
}
template <>
bool stores<std::uint8_t>(DType dtype) noexcept {
  return dtype == D::u8 || dtype == D::qu8;
}
template <>
bool stores<std::int16_t>(DType dtype) noexcept {
  return dtype == D::i16;
}
template <>
bool stores<std::uint16_t>(DType dtype) noexcept {
  return dtype == D::u16;
}
template <>
bool stores<std::int32_t>(DType dtype) noexcept {
  return dtype == D::i32 || dtype == D::qi32;
}
template <>
bool stores<std::uint32_t>(DType dtype) noexcept {
  return dtype == D::u32;
}
template <>
bool stores<std::int64_t>(DType dtype) noexcept {
  return dtype == D::i64;
}
template <>
bool stores<std::uint64_t>(DType dtype) noexcept {
  return dtype == D::u64;
}
template <>
bool stores<float>(DType dtype) noexcept {
  return dtype == D::f32;
}
template <>
bool stores<double>(DType dtype) noexcept {
  return dtype == D::f64;
}
template <>
bool stores<float16>(DType dtype) noexcept {
  return dtype == D::f16;
}
template <>
bool stores<bfloat16>(DType dtype) noexcept {
  return dtype == D::bf16;
}
template <>
bool stores<std::complex<float>>(DType dtype) noexcept {
  return dtype == D::c64;
}
template <>
bool stores<std::complex<double>>(DType dtype) noexcept {
  return dtype == D::c128;
}

}  // namespace ballast
