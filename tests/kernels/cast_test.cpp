#include "kernels/cast.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include "kernels/cast_simd.hpp"
#include "support/files.hpp"
#include "support/vectors.hpp"

namespace ballast::kernels {
namespace {

using Codes = std::vector<std::uint64_t>;

// The reference computes every type by its formula, slowly, in long double, which holds F64 and 64-bit integers
// exactly.
enum class Nan { none, ieee, all_ones, negative_zero, exponent_only };

struct Format {
  DType dtype;
  int bits, mantissa, bias;
  Nan nan;
};

constexpr Format kFormats[] = {
    {DType::f64, 64, 52, 1023, Nan::ieee},
    {DType::f32, 32, 23, 127, Nan::ieee},
    {DType::f16, 16, 10, 15, Nan::ieee},
    {DType::bf16, 16, 7, 127, Nan::ieee},
    {DType::f8_e5m2, 8, 2, 15, Nan::ieee},
    {DType::f8_e4m3, 8, 3, 7, Nan::all_ones},
    {DType::f8_e4m3fnuz, 8, 3, 8, Nan::negative_zero},
    {DType::f8_e5m2fnuz, 8, 2, 16, Nan::negative_zero},
    {DType::f8_e8m0, 8, 0, 127, Nan::exponent_only},
    {DType::f6_e2m3, 6, 3, 1, Nan::none},
    {DType::f6_e3m2, 6, 2, 3, Nan::none},
    {DType::f4, 4, 1, 1, Nan::none},
};

constexpr DType kTargets[] = {DType::f64,     DType::f32,     DType::f16,         DType::bf16,
                              DType::f8_e4m3, DType::f8_e5m2, DType::f8_e4m3fnuz, DType::f8_e5m2fnuz};
constexpr DType kIntegers[] = {DType::boolean, DType::i8,  DType::u8,  DType::i16, DType::u16,
                               DType::i32,     DType::u32, DType::i64, DType::u64};

const Format& format(DType dtype) {
  return *std::find_if(std::begin(kFormats), std::end(kFormats), [&](const Format& f) { return f.dtype == dtype; });
}

std::uint64_t ones(int bits) { return bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1; }
std::uint64_t sign_bit(const Format& f) { return std::uint64_t{1} << (f.bits - 1); }
std::uint64_t infinity_code(const Format& f) { return ones(f.bits - 1) & ~ones(f.mantissa); }

bool is_nan(const Format& f, std::uint64_t code) {
  switch (f.nan) {
    case Nan::none: return false;
    case Nan::ieee: return (code & ones(f.bits - 1)) > infinity_code(f);
    case Nan::all_ones: return (code & ones(f.bits - 1)) == ones(f.bits - 1);
    case Nan::negative_zero: return code == sign_bit(f);
    case Nan::exponent_only: return code == 255;
  }
  return false;
}

// The value of a code that is not NaN; a code past the largest number has the value that it would have without limits.
long double magnitude_of(const Format& f, std::uint64_t code) {
  if (f.nan == Nan::exponent_only) return ldexpl(1, static_cast<int>(code) - 127);
  const std::uint64_t exponent = code >> f.mantissa, mantissa = code & ones(f.mantissa);
  if (exponent == 0) return ldexpl(static_cast<long double>(mantissa), 1 - f.bias - f.mantissa);
  return ldexpl(static_cast<long double>(mantissa | (std::uint64_t{1} << f.mantissa)),
                static_cast<int>(exponent) - f.bias - f.mantissa);
}

long double value_of(const Format& f, std::uint64_t code) {
  if (f.nan == Nan::exponent_only) return magnitude_of(f, code);
  const std::uint64_t magnitude = code & ones(f.bits - 1);
  const bool infinite = f.nan == Nan::ieee && magnitude == infinity_code(f);
  const long double value = infinite ? std::numeric_limits<long double>::infinity() : magnitude_of(f, magnitude);
  return (code & sign_bit(f)) != 0 ? -value : value;
}

std::uint64_t largest_code(const Format& f) {
  if (f.nan == Nan::ieee) return infinity_code(f) - 1;
  return f.nan == Nan::all_ones ? ones(f.bits - 1) - 1 : ones(f.bits - 1);
}

std::uint64_t infinite_code(const Format& f) { return largest_code(f) + 1; }

// The code of a finite value that is too large: the F8 types saturate.
std::uint64_t overflow_code(const Format& f) { return f.bits == 8 ? largest_code(f) : infinite_code(f); }

// The code of a value that is not NaN, rounded to nearest even.
std::uint64_t code_of(const Format& f, long double value) {
  const bool negative = std::signbit(value);
  const long double magnitude = fabsl(value);
  std::uint64_t code = std::isfinite(value) ? overflow_code(f) : infinite_code(f);
  if (std::isfinite(value)) {
    int exponent = 0;
    frexpl(magnitude, &exponent);
    const int quantum = magnitude == 0 ? 0 : std::max(exponent - f.mantissa - 1, 1 - f.bias - f.mantissa);
    const long double steps = nearbyintl(ldexpl(magnitude, -quantum));
    const int field = magnitude == 0 ? 0 : quantum - (1 - f.bias - f.mantissa);
    code = std::min(code, (static_cast<std::uint64_t>(field) << f.mantissa) + static_cast<std::uint64_t>(steps));
  }
  if (f.nan == Nan::negative_zero && code == 0) return 0;
  return code | (negative ? sign_bit(f) : 0);
}

std::uint64_t expected_nan(const Format& from, const Format& to, std::uint64_t code) {
  const bool negative = from.nan != Nan::exponent_only && (code & sign_bit(from)) != 0;
  const std::uint64_t sign = negative ? sign_bit(to) : 0;
  if (to.nan == Nan::negative_zero) return sign_bit(to);
  if (to.nan == Nan::all_ones) return sign | ones(to.bits - 1);
  std::uint64_t payload = from.nan == Nan::ieee ? code & ones(from.mantissa) : 0;
  const int shift = from.nan == Nan::ieee ? to.mantissa - from.mantissa : 0;
  payload = shift >= 0 ? payload << shift : payload >> -shift;
  const bool stays_signalling = from.dtype == DType::bf16 && to.dtype == DType::f32;
  const std::uint64_t quiet = stays_signalling ? 0 : std::uint64_t{1} << (to.mantissa - 1);
  return sign | infinity_code(to) | quiet | payload;
}

std::uint64_t expected(DType from, DType to, std::uint64_t code) {
  const Format &source = format(from), &target = format(to);
  return is_nan(source, code) ? expected_nan(source, target, code) : code_of(target, value_of(source, code));
}

long double integer_value(DType dtype, std::uint64_t code) {
  switch (dtype) {
    case DType::boolean: return code != 0 ? 1 : 0;
    case DType::i8: return static_cast<std::int8_t>(code);
    case DType::i16: return static_cast<std::int16_t>(code);
    case DType::i32: return static_cast<std::int32_t>(code);
    case DType::i64: return static_cast<long double>(static_cast<std::int64_t>(code));
    default: return static_cast<long double>(code);
  }
}

// Elements are packed from the lowest bit up.
std::vector<std::byte> pack(DType dtype, const Codes& codes) {
  const std::size_t bits = info(dtype).block_bytes * std::size_t{8} / info(dtype).block_elements;
  std::vector<std::byte> bytes((codes.size() * bits + 7) / 8);
  for (std::size_t i = 0; i < codes.size(); ++i) {
    for (std::size_t b = 0; b < bits; ++b) {
      const std::size_t at = i * bits + b;
      if ((codes[i] >> b & 1) != 0) bytes[at / 8] |= std::byte{1} << (at % 8);
    }
  }
  return bytes;
}

Codes unpack(DType dtype, std::span<const std::byte> bytes) {
  const std::size_t size = info(dtype).block_bytes;
  Codes codes(bytes.size() / size);
  for (std::size_t i = 0; i < codes.size(); ++i) std::memcpy(&codes[i], bytes.data() + i * size, size);
  return codes;
}

Codes cast_codes(DType from, DType to, const Codes& codes) {
  const std::vector<std::byte> in = pack(from, codes);
  std::vector<std::byte> out(*bytes_of(to, codes.size()));
  cast(from, to, in, out);
  return unpack(to, out);
}

// Reports the first difference and how many there are, rather than a million lines.
void expect_casts(DType from, DType to, Codes codes, std::uint64_t (*want)(DType, DType, std::uint64_t) = expected) {
  while (codes.size() % info(from).block_elements != 0) codes.push_back(0);
  const Codes got = cast_codes(from, to, codes);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const std::uint64_t right = want(from, to, codes[i]);
    if (got[i] == right || wrong++ > 0) continue;
    ADD_FAILURE() << name(from) << " 0x" << std::hex << codes[i] << " became " << name(to) << " 0x" << got[i]
                  << ", not 0x" << right;
  }
  EXPECT_EQ(wrong, 0u) << name(from) << " to " << name(to);
}

std::uint64_t expected_from_integer(DType from, DType to, std::uint64_t code) {
  return code_of(format(to), integer_value(from, code));
}

Codes all_codes(int bits) {
  Codes codes(std::size_t{1} << bits);
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = i;
  return codes;
}

Codes random_codes(int bits, std::size_t count) {
  std::mt19937_64 random(static_cast<std::uint64_t>(bits) + count);
  Codes codes(count);
  for (auto& code : codes) code = random() & ones(bits);
  return codes;
}

// The values where rounding decides, as codes of T: around every number of the target and every midpoint between two.
template <class T, class Code>
Codes rounding_boundaries(DType to) {
  const Format& target = format(to);
  Codes codes;
  const auto add = [&](long double value) {
    const T exact = static_cast<T>(value);
    for (const T x : {exact, std::nextafter(exact, T{0}), std::nextafter(exact, std::numeric_limits<T>::infinity())}) {
      codes.push_back(std::bit_cast<Code>(x));
      codes.push_back(std::bit_cast<Code>(-x));
    }
  };
  for (std::uint64_t code = 0; code <= largest_code(target); ++code) {
    const long double low = magnitude_of(target, code), high = magnitude_of(target, code + 1);
    add(low);
    add((low + high) / 2);
  }
  add(magnitude_of(target, overflow_code(target)));
  add(std::numeric_limits<T>::max());
  add(std::numeric_limits<T>::denorm_min());
  add(std::numeric_limits<T>::infinity());
  return codes;
}

class CastOnTarget : public testing::TestWithParam<std::int64_t> {
 protected:
  void SetUp() override { hwy::SetSupportedTargetsForTest(GetParam()); }
  void TearDown() override { hwy::SetSupportedTargetsForTest(0); }
};

INSTANTIATE_TEST_SUITE_P(Highway, CastOnTarget, testing::ValuesIn(hwy::SupportedAndGeneratedTargets()),
                         [](const auto& target) { return std::string(hwy::TargetName(target.param)); });

TEST_P(CastOnTarget, GivesTheFormulasValueForEveryCodeOfUpTo16Bits) {
  for (const Format& from : kFormats) {
    if (from.bits > 16) continue;
    for (const DType to : kTargets) {
      if (to != from.dtype) expect_casts(from.dtype, to, all_codes(from.bits));
    }
  }
}

TEST_P(CastOnTarget, RoundsF32ToNearestEvenAtEveryBoundary) {
  for (const DType to : kTargets) {
    if (format(to).bits <= 16) expect_casts(DType::f32, to, rounding_boundaries<float, std::uint32_t>(to));
  }
}

TEST_P(CastOnTarget, RoundsF64OnceAtEveryBoundary) {
  for (const DType to : kTargets) {
    if (format(to).bits <= 16) expect_casts(DType::f64, to, rounding_boundaries<double, std::uint64_t>(to));
  }
}

TEST_P(CastOnTarget, AgreesWithTheFormulaOnRandomBits) {
  for (const DType to : kTargets) {
    if (to != DType::f32) expect_casts(DType::f32, to, random_codes(32, 100'000));
    if (to != DType::f64) expect_casts(DType::f64, to, random_codes(64, 100'000));
  }
}

TEST_P(CastOnTarget, RoundsIntegersOnce) {
  std::mt19937_64 random(7);
  for (const DType from : kIntegers) {
    const int bits = info(from).block_bytes * 8;
    Codes codes = bits <= 16 ? all_codes(bits) : random_codes(bits, 20'000);
    for (int shift = 0; shift < bits; ++shift) {
      for (const std::uint64_t near : {0ULL, 1ULL, 2ULL, ~0ULL, ~1ULL}) {
        // 2^s, 3*2^s, 0x101*2^s, ... are the ends and midpoints of steps of every length.
        for (const std::uint64_t top :
             {1ULL, 3ULL, 0x101ULL, 0x103ULL, 0x801ULL, 0x803ULL, 0x1000001ULL, 0x1000003ULL}) {
          codes.push_back(((top << shift) + near) & ones(bits));
          codes.push_back((0 - (top << shift) + near) & ones(bits));
        }
      }
      codes.push_back(random() >> shift & ones(bits));
    }
    for (const DType to : kTargets) expect_casts(from, to, codes, expected_from_integer);
  }
}

TEST_P(CastOnTarget, TakesAnyLengthAtAnyAddressAndWritesNothingElse) {
  std::mt19937 random(1);
  for (const auto& [from, to] : {std::pair{DType::f32, DType::bf16},
                                 {DType::f32, DType::f16},
                                 {DType::f32, DType::f8_e4m3},
                                 {DType::bf16, DType::f32},
                                 {DType::f16, DType::f32},
                                 {DType::f16, DType::bf16},
                                 {DType::bf16, DType::f16},
                                 {DType::f64, DType::bf16},
                                 {DType::i64, DType::f64}}) {
    for (std::size_t count = 0; count <= 67; ++count) {
      const std::size_t in_askew = random() % 16, out_askew = random() % 16;
      const Codes codes = random_codes(format(DType::f32).bits, count);
      const std::vector<std::byte> packed = pack(from, codes);
      std::vector<std::byte> in(in_askew + packed.size()), out(out_askew + *bytes_of(to, count) + 16, std::byte{0xA5});
      std::copy(packed.begin(), packed.end(), in.begin() + static_cast<std::ptrdiff_t>(in_askew));
      cast(from, to, std::span(in).subspan(in_askew), std::span(out).subspan(out_askew, *bytes_of(to, count)));

      EXPECT_EQ(unpack(to, std::span(out).subspan(out_askew, *bytes_of(to, count))), cast_codes(from, to, codes));
      const auto untouched = [](std::byte b) { return b == std::byte{0xA5}; };
      EXPECT_TRUE(std::all_of(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(out_askew), untouched));
      EXPECT_TRUE(std::all_of(out.end() - 16, out.end(), untouched));
    }
  }
}

// Large outputs are streamed: the same bytes must come out, whatever the address, up to the very ends.
TEST_P(CastOnTarget, GivesTheSameBytesWhenItStreams) {
  constexpr std::size_t kCount = kStreamCastFromBytes / 2 + 77, kPart = 1000;
  std::vector<std::byte> in(kCount * 4 + 8), whole(kCount * 4 + 8), part(kPart * 4);
  std::mt19937 random(3);
  for (std::size_t i = 0; i < in.size(); i += 4) {
    const auto word = static_cast<std::uint32_t>(random());
    std::memcpy(&in[i], &word, 4);
  }
  for (const auto& [from, to] : {std::pair{DType::f32, DType::bf16},
                                 {DType::f32, DType::f16},
                                 {DType::bf16, DType::f32},
                                 {DType::f16, DType::f32},
                                 {DType::f16, DType::bf16},
                                 {DType::bf16, DType::f16}}) {
    const std::size_t in_size = info(from).block_bytes, out_size = info(to).block_bytes;
    for (const std::size_t askew : {0U, 1U, 2U, 4U}) {
      const auto source = std::span<const std::byte>(in).subspan(askew, kCount * in_size);
      const auto target = std::span(whole).subspan(askew, kCount * out_size);
      cast(from, to, source, target);
      for (std::size_t first = 0; first < kCount; first += kPart) {
        const std::size_t count = std::min(kPart, kCount - first);
        cast(from, to, source.subspan(first * in_size, count * in_size), std::span(part).first(count * out_size));
        ASSERT_EQ(std::memcmp(part.data(), target.data() + first * out_size, count * out_size), 0)
            << name(from) << " to " << name(to) << " askew by " << askew << " near element " << first;
      }
    }
  }
}

TEST(Cast, CopiesWhenTheTypeStays) {
  for (const DType type : kTargets) {
    const Codes codes = random_codes(format(type).bits, 100);
    EXPECT_EQ(cast_codes(type, type, codes), codes);
  }
}

TEST(Cast, OffersFloatingTargetsForEveryNumber) {
  for (const DTypeInfo& from : all_dtypes()) {
    const bool is_number = from.kind == DTypeKind::floating || from.kind == DTypeKind::boolean ||
                           from.kind == DTypeKind::signed_integer || from.kind == DTypeKind::unsigned_integer;
    for (const DTypeInfo& to : all_dtypes()) {
      const bool is_target = std::find(std::begin(kTargets), std::end(kTargets), to.dtype) != std::end(kTargets);
      EXPECT_EQ(can_cast(from.dtype, to.dtype), is_number && is_target) << from.name << " to " << to.name;
    }
  }
}

std::uint64_t f32(float x) { return std::bit_cast<std::uint32_t>(x); }

// A few values that anybody can check by hand.
TEST(Cast, SaturatesInF8AndOverflowsElsewhere) {
  const Codes codes = {f32(1e6F), f32(-INFINITY), f32(448), f32(464), f32(465), f32(-0.0F)};
  EXPECT_EQ(cast_codes(DType::f32, DType::f16, codes), (Codes{0x7C00, 0xFC00, 0x5F00, 0x5F40, 0x5F44, 0x8000}));
  EXPECT_EQ(cast_codes(DType::f32, DType::f8_e5m2, codes), (Codes{0x7B, 0xFC, 0x5F, 0x5F, 0x5F, 0x80}));
  EXPECT_EQ(cast_codes(DType::f32, DType::f8_e4m3, codes), (Codes{0x7E, 0xFF, 0x7E, 0x7E, 0x7E, 0x80}));
  EXPECT_EQ(cast_codes(DType::f32, DType::f8_e4m3fnuz, codes), (Codes{0x7F, 0x80, 0x7F, 0x7F, 0x7F, 0x00}));
}

// `first` is the smallest F32 that is too large for each type; the one before it is not.
TEST(Cast, CountsTheFiniteValuesThatAreTooLarge) {
  struct Border {
    DType dtype;
    float first;
  };
  const Border borders[] = {{DType::f16, 65520},     {DType::bf16, 0x1.FFp127F}, {DType::f8_e4m3, 464.00003F},
                            {DType::f8_e5m2, 61440}, {DType::f8_e4m3fnuz, 248},  {DType::f8_e5m2fnuz, 61440}};
  for (const auto& [dtype, first] : borders) {
    const float before = std::nextafter(first, 0.0F);
    // The value lies among so many others that every kind of step of the kernels comes to see it.
    for (const std::size_t count : {1U, 7U, 1000U, 70000U}) {
      for (const std::size_t at : {std::size_t{0}, count / 2, count - 1}) {
        std::vector<float> values(count, 1.0F);
        std::vector<std::byte> out(count * info(dtype).block_bytes);
        values[at] = -before;
        EXPECT_EQ(cast(DType::f32, dtype, std::as_bytes(std::span(values)), out).count, 0U) << name(dtype);
        values[at] = -first;
        const Overflows found = cast(DType::f32, dtype, std::as_bytes(std::span(values)), out);
        EXPECT_EQ(found.count, 1U) << name(dtype) << " " << count;
        EXPECT_EQ(found.largest, static_cast<double>(-first));
      }
    }
  }
}

TEST(Cast, CountsNeitherInfinitiesNorNanNorRoundingToZero) {
  const std::vector<float> values = {INFINITY, -INFINITY, NAN, 1e-30F, -0.0F, 3.0F};
  for (const DType to : kTargets) {
    std::vector<std::byte> out(values.size() * info(to).block_bytes);
    EXPECT_EQ(cast(DType::f32, to, std::as_bytes(std::span(values)), out).count, 0U) << name(to);
  }
}

TEST(Cast, CountsValuesThatAreTooLargeInEverySourceType) {
  const std::vector<double> wide = {1e300, -1e301, 3e38, 1.0, std::numeric_limits<double>::infinity()};
  std::vector<std::byte> out(wide.size() * 4);
  for (const auto& [to, count] :
       {std::pair(DType::f32, 2U), std::pair(DType::f16, 3U), std::pair(DType::f8_e4m3, 3U)}) {
    const auto room = std::span(out).first(wide.size() * info(to).block_bytes);
    const Overflows found = cast(DType::f64, to, std::as_bytes(std::span(wide)), room);
    EXPECT_EQ(found.count, count) << name(to);
    EXPECT_EQ(found.largest, -1e301) << name(to);
  }
  const std::vector<std::int64_t> integers = {1'000'000, 5, -70'000};
  const Overflows found =
      cast(DType::i64, DType::f16, std::as_bytes(std::span(integers)), std::span(out).first(integers.size() * 2));
  EXPECT_EQ(found.count, 2U);
  EXPECT_EQ(found.largest, 1e6);
  const std::vector<std::uint16_t> bf16 = {0x7149, 0x3F80};  // 1e30, 1
  EXPECT_EQ(cast(DType::bf16, DType::f16, std::as_bytes(std::span(bf16)), std::span(out).first(4)).count, 1U);
}

TEST(Cast, UnpacksTheLowNibbleFirst) {
  EXPECT_EQ(cast_codes(DType::f4, DType::f16, {2, 15}), (Codes{0x3C00, 0xC600}));  // 1, -6
}

std::vector<std::byte> reference_file(const std::string& file) {
  const std::string bytes = test::read_whole_file(test::vector_path("ggml/" + file));
  const auto* data = reinterpret_cast<const std::byte*>(bytes.data());
  return {data, data + bytes.size()};
}

TEST(Cast, AgreesWithGgml) {
  for (const DType half : {DType::f16, DType::bf16}) {
    const std::string prefix(name(half));
    for (const auto& [from, to, in_file, out_file] : {std::tuple{half, DType::f32, ".decode.blocks", ".decode.f32"},
                                                      {DType::f32, half, ".encode.src.f32", ".encode.blocks"}}) {
      const auto in = reference_file(prefix + in_file), want = reference_file(prefix + out_file);
      std::vector<std::byte> got(want.size());
      cast(from, to, in, got);
      EXPECT_TRUE(got == want) << prefix + in_file;
    }
  }
}

}  // namespace
}  // namespace ballast::kernels
