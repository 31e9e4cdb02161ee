#include "kernels/cast.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "kernels/cast_simd.hpp"

namespace ballast::kernels {

static_assert(std::endian::native == std::endian::little, "tensors are little-endian, and are read as they lie");

namespace {

// Returns whether a finite element may have been too large, so that a second, exact pass is worth its time.
using Convert = bool (*)(const std::byte* in, std::byte* out, std::size_t count);

// A pair of types without a direct cast goes through blocks of F32 on the stack. A block is small enough to stay in the
// first-level cache, and a multiple of every type's block.
constexpr std::size_t kStageElements = 1024;

template <class T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <class From, class To, To (*kOne)(From)>
bool convert_each(const std::byte* in, std::byte* out, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const To value = kOne(load<From>(in + i * sizeof(From)));
    std::memcpy(out + i * sizeof(To), &value, sizeof value);
  }
  return false;
}

bool f64_to_f32(const std::byte* in, std::byte* out, std::size_t count) {
  std::int32_t most = 0;  // magnitudes have the same order as their bits
  for (std::size_t i = 0; i < count; ++i) {
    const auto value = static_cast<float>(load<double>(in + i * sizeof(double)));
    std::memcpy(out + i * sizeof value, &value, sizeof value);
    most = std::max(most, std::bit_cast<std::int32_t>(value) & 0x7FFFFFFF);
  }
  return most >= 0x7F800000;
}

template <class From, class To>
To nearest(From value) {
  return static_cast<To>(value);
}

float from_boolean(std::uint8_t value) { return value != 0 ? 1.0F : 0.0F; }

// Rounding to odd (to the inexact neighbour whose last bit is 1) loses nothing that a later rounding to a shorter type
// needs, so the two together round once. S. Boldo and G. Melquiond, "When double rounding is odd", 2005.
float odd(double value) {
  const float rounded = static_cast<float>(value);
  const double back = rounded;
  const auto bits = std::bit_cast<std::uint32_t>(rounded);
  const bool keep = back == value || (bits & 1) != 0 || std::isnan(value);
  const std::uint32_t other = std::fabs(back) < std::fabs(value) ? bits + 1 : bits - 1;
  return keep ? rounded : std::bit_cast<float>(other);
}

template <class Integer>
float odd_from_32(Integer value) {
  return odd(static_cast<double>(value));
}

// Above 2^53 the last 11 bits are first folded into the bit above them, which rounds to odd an integer that F64 cannot
// hold.
template <class Integer>
float odd_from_64(Integer value) {
  constexpr Integer kExact = Integer{1} << 53, kTail = (1 << 11) - 1;
  bool is_exact = value <= kExact;
  if constexpr (std::is_signed_v<Integer>) is_exact = is_exact && value >= -kExact;
  const Integer folded = static_cast<Integer>((value & ~kTail) | ((value & kTail) != 0 ? kTail + 1 : 0));
  return odd_from_32(is_exact ? value : folded);
}

// A type of at most 8 bits is decoded by a table of floats.
enum class Specials : std::uint8_t { none, ieee, all_ones_is_nan, negative_zero_is_nan };

constexpr float power_of_two(int exponent) {
  float value = 1;
  for (; exponent > 0; --exponent) value *= 2;
  for (; exponent < 0; ++exponent) value /= 2;
  return value;
}

constexpr float nan_with(bool negative, unsigned payload_top_bits, int payload_bits) {
  const unsigned sign = negative ? 0x80000000U : 0U;
  return std::bit_cast<float>(sign | 0x7FC00000U | payload_top_bits << (23 - payload_bits));
}

template <int kBits, int kMantissa, int kBias, Specials kSpecials>
constexpr auto small_float_table() {
  std::array<float, (1 << kBits)> table{};
  constexpr unsigned kSign = 1U << (kBits - 1), kImplied = 1U << kMantissa;
  for (unsigned code = 0; code < table.size(); ++code) {
    const bool negative = (code & kSign) != 0;
    const unsigned exponent = (code & (kSign - 1)) >> kMantissa, mantissa = code & (kImplied - 1);
    const unsigned significand = exponent == 0 ? mantissa : mantissa | kImplied;
    const int scale = static_cast<int>(std::max(exponent, 1U)) - kBias - kMantissa;
    const float magnitude = static_cast<float>(significand) * power_of_two(scale);
    table[code] = negative ? -magnitude : magnitude;

    const bool top = exponent == (kSign - 1) >> kMantissa;
    if (kSpecials == Specials::ieee && top) {
      const float infinity = std::bit_cast<float>(negative ? 0xFF800000U : 0x7F800000U);
      table[code] = mantissa == 0 ? infinity : nan_with(negative, mantissa, kMantissa);
    }
    if (kSpecials == Specials::all_ones_is_nan && (code & (kSign - 1)) == kSign - 1)
      table[code] = nan_with(negative, 0, 1);
    if (kSpecials == Specials::negative_zero_is_nan && code == kSign) table[code] = nan_with(true, 0, 1);
  }
  return table;
}

constexpr auto exponent_table() {
  std::array<float, 256> table{};
  for (int code = 0; code < 255; ++code) table[static_cast<std::size_t>(code)] = power_of_two(code - 127);
  table[255] = nan_with(false, 0, 1);
  return table;
}

constexpr auto kE4m3 = small_float_table<8, 3, 7, Specials::all_ones_is_nan>();
constexpr auto kE5m2 = small_float_table<8, 2, 15, Specials::ieee>();
constexpr auto kE4m3Fnuz = small_float_table<8, 3, 8, Specials::negative_zero_is_nan>();
constexpr auto kE5m2Fnuz = small_float_table<8, 2, 16, Specials::negative_zero_is_nan>();
constexpr auto kE8m0 = exponent_table();
constexpr auto kE2m3 = small_float_table<6, 3, 1, Specials::none>();
constexpr auto kE3m2 = small_float_table<6, 2, 3, Specials::none>();
constexpr auto kE2m1 = small_float_table<4, 1, 1, Specials::none>();

template <const std::array<float, 256>& kTable>
float look_up(std::uint8_t code) {
  return kTable[code];
}

// Elements of 4 or 6 bits, the first element in the lowest bits.
template <int kBits, std::size_t kBlockBytes, const auto& kTable>
bool unpack_f32(const std::byte* in, std::byte* out, std::size_t count) {
  constexpr std::size_t kPerBlock = kBlockBytes * 8 / kBits;
  for (std::size_t i = 0; i < count; i += kPerBlock) {
    std::uint32_t packed = 0;
    std::memcpy(&packed, in, kBlockBytes);
    in += kBlockBytes;
    for (std::size_t k = 0; k < kPerBlock; ++k, packed >>= kBits, out += sizeof(float)) {
      std::memcpy(out, &kTable[packed & ((1U << kBits) - 1)], sizeof(float));
    }
  }
  return false;
}

template <SimdCast kWhich>
bool simd(const std::byte* in, std::byte* out, std::size_t count) {
  return simd_cast(kWhich, in, out, count);
}

template <std::size_t kSize>
bool copy(const std::byte* in, std::byte* out, std::size_t count) {
  std::memcpy(out, in, count * kSize);
  return false;
}

struct Source {
  DType dtype;
  Convert to_f32;      // rounded to nearest
  Convert to_f32_odd;  // rounded to odd, for a second rounding to follow; null if to_f32 is exact
  Convert to_f64;      // null if the cast goes through F32, which is then exact
};

template <class T>
constexpr Convert kSmall = convert_each<T, float, nearest<T, float>>;
template <class T, float (*kOdd)(T)>
constexpr Source wide_integer(DType dtype) {
  return {dtype, convert_each<T, float, nearest<T, float>>, convert_each<T, float, kOdd>,
          convert_each<T, double, nearest<T, double>>};
}
template <const std::array<float, 256>& kTable>
constexpr Convert kTabled = convert_each<std::uint8_t, float, look_up<kTable>>;

constexpr Convert kF32ToF64 = convert_each<float, double, nearest<float, double>>;

constexpr Source kSources[] = {
    {DType::f64, f64_to_f32, convert_each<double, float, odd>, copy<8>},
    {DType::f32, copy<4>, nullptr, kF32ToF64},
    {DType::f16, simd<SimdCast::f16_to_f32>, nullptr, nullptr},
    {DType::bf16, simd<SimdCast::bf16_to_f32>, nullptr, nullptr},
    {DType::f8_e4m3, kTabled<kE4m3>, nullptr, nullptr},
    {DType::f8_e5m2, kTabled<kE5m2>, nullptr, nullptr},
    {DType::f8_e8m0, kTabled<kE8m0>, nullptr, nullptr},
    {DType::f8_e4m3fnuz, kTabled<kE4m3Fnuz>, nullptr, nullptr},
    {DType::f8_e5m2fnuz, kTabled<kE5m2Fnuz>, nullptr, nullptr},
    {DType::f6_e2m3, unpack_f32<6, 3, kE2m3>, nullptr, nullptr},
    {DType::f6_e3m2, unpack_f32<6, 3, kE3m2>, nullptr, nullptr},
    {DType::f4, unpack_f32<4, 1, kE2m1>, nullptr, nullptr},
    {DType::boolean, convert_each<std::uint8_t, float, from_boolean>, nullptr, nullptr},
    {DType::i8, kSmall<std::int8_t>, nullptr, nullptr},
    {DType::u8, kSmall<std::uint8_t>, nullptr, nullptr},
    {DType::i16, kSmall<std::int16_t>, nullptr, nullptr},
    {DType::u16, kSmall<std::uint16_t>, nullptr, nullptr},
    wide_integer<std::int32_t, odd_from_32>(DType::i32),
    wide_integer<std::uint32_t, odd_from_32>(DType::u32),
    wide_integer<std::int64_t, odd_from_64>(DType::i64),
    wide_integer<std::uint64_t, odd_from_64>(DType::u64),
};

// A magnitude above `reach` rounds to more than the largest number. `reach` itself is half-way between the largest
// number and the number that would come next, and goes to the even one of them: only in F8_E4M3 it goes down.
struct Target {
  DType dtype;
  Convert from_f32;
  double reach = std::numeric_limits<double>::infinity();
  bool reach_is_too_large = true;
};

constexpr Target kTargets[] = {
    {DType::f64, kF32ToF64},
    {DType::f32, copy<4>, 0x1.FFFFFFp127},
    {DType::f16, simd<SimdCast::f32_to_f16>, 65520},
    {DType::bf16, simd<SimdCast::f32_to_bf16>, 0x1.FFp127},
    {DType::f8_e4m3, simd<SimdCast::f32_to_f8_e4m3>, 464, false},
    {DType::f8_e5m2, simd<SimdCast::f32_to_f8_e5m2>, 61440},
    {DType::f8_e4m3fnuz, simd<SimdCast::f32_to_f8_e4m3fnuz>, 248},
    {DType::f8_e5m2fnuz, simd<SimdCast::f32_to_f8_e5m2fnuz>, 61440},
};

template <class Entry, std::size_t kCount>
const Entry* find(const Entry (&entries)[kCount], DType dtype) {
  const auto* found = std::find_if(entries, entries + kCount, [&](const Entry& e) { return e.dtype == dtype; });
  return found == entries + kCount ? nullptr : found;
}

// The cast from `source` to `target` in one step; null if there is none.
Convert direct(const Source& source, const Target& target) {
  if (target.dtype == DType::f64) return source.to_f64;
  if (target.dtype == DType::f32) return source.to_f32;
  if (source.dtype == DType::f32) return target.from_f32;
  if (source.dtype == DType::bf16 && target.dtype == DType::f16) return simd<SimdCast::bf16_to_f16>;
  if (source.dtype == DType::f16 && target.dtype == DType::bf16) return simd<SimdCast::f16_to_bf16>;
  return nullptr;
}

struct ByteSizes {
  explicit ByteSizes(DType dtype) : elements(info(dtype).block_elements), bytes(info(dtype).block_bytes) {}
  std::size_t of(std::size_t count) const { return count / elements * bytes; }
  std::size_t elements, bytes;
};

// Finds the overflows among values that are as wide as they need to be. They are counted first, in a loop that becomes
// vector code, because most blocks have none.
template <class Float>
void find_among(const Float* values, std::size_t count, const Target& target, Overflows& found) {
  constexpr Float kLargest = std::numeric_limits<Float>::max();
  const auto reach = static_cast<Float>(target.reach);  // exact
  std::uint64_t beyond = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const Float magnitude = std::fabs(values[i]);
    const bool is_beyond = target.reach_is_too_large ? magnitude >= reach : magnitude > reach;
    beyond += is_beyond && magnitude <= kLargest ? 1U : 0U;
  }
  if (beyond == 0) return;
  found.count += beyond;
  for (std::size_t i = 0; i < count; ++i) {
    const double magnitude = std::fabs(static_cast<double>(values[i]));
    if (std::isfinite(magnitude) && magnitude > std::fabs(found.largest))
      found.largest = static_cast<double>(values[i]);
  }
}

Overflows find_in(const Source& source, const Target& target, std::span<const std::byte> in) {
  const ByteSizes sizes(source.dtype);
  const std::size_t total = in.size() / sizes.bytes * sizes.elements;
  const bool fits_f32 = source.to_f32_odd == nullptr;
  alignas(64) std::byte stage[kStageElements * sizeof(double)];
  Overflows found;
  for (std::size_t first = 0; first < total; first += kStageElements) {
    const std::size_t count = std::min(kStageElements, total - first);
    (fits_f32 ? source.to_f32 : source.to_f64)(in.data() + sizes.of(first), stage, count);
    fits_f32 ? find_among(reinterpret_cast<const float*>(stage), count, target, found)
             : find_among(reinterpret_cast<const double*>(stage), count, target, found);
  }
  if (found.count != 0) found.dtype = target.dtype;
  return found;
}

}  // namespace

bool can_cast(DType from, DType to) noexcept {
  return find(kSources, from) != nullptr && find(kTargets, to) != nullptr;
}

Overflows cast(DType from, DType to, std::span<const std::byte> in, std::span<std::byte> out) noexcept {
  const std::size_t count = out.size() / info(to).block_bytes;
  if (count == 0) return {};
  if (from == to) {
    copy<1>(in.data(), out.data(), in.size());
    return {};
  }
  const Source& source = *find(kSources, from);
  const Target& target = *find(kTargets, to);
  bool may_be_too_large = false;
  if (const Convert convert = direct(source, target)) {
    may_be_too_large = convert(in.data(), out.data(), count);
  } else {
    const Convert load_stage = source.to_f32_odd != nullptr ? source.to_f32_odd : source.to_f32;
    const ByteSizes in_bytes(from), out_bytes(to);
    alignas(64) std::byte stage[kStageElements * sizeof(float)];
    for (std::size_t first = 0; first < count; first += kStageElements) {
      const std::size_t n = std::min(kStageElements, count - first);
      load_stage(in.data() + in_bytes.of(first), stage, n);
      may_be_too_large = target.from_f32(stage, out.data() + out_bytes.of(first), n) || may_be_too_large;
    }
  }
  return may_be_too_large ? find_in(source, target, in) : Overflows{};
}

Overflows find_overflows(DType from, DType to, std::span<const std::byte> in) noexcept {
  return from == to ? Overflows{} : find_in(*find(kSources, from), *find(kTargets, to), in);
}

}  // namespace ballast::kernels
