#include "kernels/packed/codes.hpp"

#include <bit>
#include <cstring>
#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/packed/codes.cpp"
#include <hwy/foreach_target.h>  // includes this file again for every target
// Included after foreach_target.h, because it depends on the target.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace ballast::kernels {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// The codes of 4 bits in `bytes` bytes, either half of each byte first. Returns how many bytes were unpacked.
std::size_t unpack_halves(const std::uint8_t* in, std::size_t bytes, bool high_first, std::uint8_t* out) {
#if HWY_TARGET != HWY_SCALAR
  const hn::CappedTag<std::uint8_t, 16> d;
  const std::size_t lanes = hn::Lanes(d);
  const auto low = hn::Set(d, 15);
  std::size_t i = 0;
  for (; i + lanes <= bytes; i += lanes) {
    const auto pairs = hn::LoadU(d, in + i);
    auto first = hn::And(pairs, low), second = hn::ShiftRight<4>(pairs);
    if (high_first) std::swap(first, second);
    hn::StoreU(hn::InterleaveLower(d, first, second), d, out + 2 * i);
    hn::StoreU(hn::InterleaveUpper(d, first, second), d, out + 2 * i + lanes);
  }
  return i;
#else
  static_cast<void>(in), static_cast<void>(bytes), static_cast<void>(high_first), static_cast<void>(out);
  return 0;
#endif
}

// Codes that begin at any bit: the two bytes that each code lies in become a word, a product moves the code to the
// upper end of the word, and a shift to the lower one. Returns how many codes were unpacked.
template <unsigned kBits>
std::size_t unpack_words_of(const std::uint8_t* in, std::size_t size, std::uint8_t* out, std::size_t count) {
  std::size_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::FixedTag<std::uint8_t, 16> d8;
  const hn::FixedTag<std::uint16_t, 8> d16;
  alignas(16) std::uint8_t orders[16];
  alignas(16) std::uint16_t factors[8];
  for (unsigned k = 0; k < 8; ++k) {
    orders[2 * k] = static_cast<std::uint8_t>(k * kBits / 8);
    orders[2 * k + 1] = static_cast<std::uint8_t>(k * kBits / 8 + 1);
    factors[k] = static_cast<std::uint16_t>(1u << (16 - kBits - k * kBits % 8));
  }
  const auto order = hn::Load(d8, orders);
  const auto factor = hn::Load(d16, factors);
  const auto eight = [&](const std::uint8_t* from) {
    const auto words = hn::BitCast(d16, hn::TableLookupBytes(hn::LoadU(d8, from), order));
    return hn::BitCast(d8, hn::ShiftRight<16 - kBits>(hn::Mul(words, factor)));
  };
  for (std::size_t at = 0; i + 16 <= count && at + kBits + 16 <= size; i += 16, at += 2 * kBits)
    hn::StoreU(hn::ConcatEven(d8, eight(in + at + kBits), eight(in + at)), d8, out + i);
#else
  static_cast<void>(in), static_cast<void>(size), static_cast<void>(out), static_cast<void>(count);
#endif
  return i;
}

std::size_t unpack_bits(unsigned bits, const std::uint8_t* in, std::size_t size, std::uint8_t* out, std::size_t count) {
  switch (bits) {
    case 1: return unpack_words_of<1>(in, size, out, count);
    case 2: return unpack_words_of<2>(in, size, out, count);
    case 3: return unpack_words_of<3>(in, size, out, count);
    case 5: return unpack_words_of<5>(in, size, out, count);
    case 6: return unpack_words_of<6>(in, size, out, count);
    case 7: return unpack_words_of<7>(in, size, out, count);
    default: return 0;
  }
}

void bits_of_bytes_on(unsigned shift, unsigned mask, const std::uint8_t* in, std::size_t count, std::uint8_t* out) {
  std::size_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<std::uint8_t> d;
  const hn::Repartition<std::uint16_t, decltype(d)> d16;
  const auto kept = hn::Set(d, static_cast<std::uint8_t>(mask & (0xFFu >> shift)));
  for (; i + hn::Lanes(d) <= count; i += hn::Lanes(d)) {
    const auto words = hn::ShiftRightSame(hn::BitCast(d16, hn::LoadU(d, in + i)), static_cast<int>(shift));
    hn::StoreU(hn::And(hn::BitCast(d, words), kept), d, out + i);
  }
#endif
  for (; i < count; ++i) out[i] = static_cast<std::uint8_t>(in[i] >> shift & mask);
}

// A table of 16 floats is four tables of 16 bytes, each of which is one instruction; the bytes are then interleaved.
// If all values are short floats, as integers are, two of these tables are zero.
std::size_t look_up_vectors(const float* table, const std::uint8_t* codes, std::size_t count, float* out) {
#if HWY_TARGET != HWY_SCALAR
  const hn::CappedTag<std::uint8_t, 16> d8;
  const hn::Repartition<std::uint16_t, decltype(d8)> d16;
  const hn::Repartition<std::uint32_t, decltype(d8)> d32;
  const hn::Repartition<float, decltype(d8)> df;
  if (hn::Lanes(d8) != 16) return 0;
  alignas(16) std::uint8_t planes[4][16];
  for (std::size_t i = 0; i < 16; ++i) {
    std::uint32_t bits;
    std::memcpy(&bits, table + i, sizeof bits);
    for (unsigned byte = 0; byte < 4; ++byte) planes[byte][i] = static_cast<std::uint8_t>(bits >> (8 * byte));
  }
  const auto plane0 = hn::Load(d8, planes[0]), plane1 = hn::Load(d8, planes[1]);
  const auto plane2 = hn::Load(d8, planes[2]), plane3 = hn::Load(d8, planes[3]);
  const bool is_short = hn::AllTrue(d8, hn::Eq(hn::Or(plane0, plane1), hn::Zero(d8)));
  const auto low = hn::Set(d8, 15);

  const auto store = [&](auto lower, auto upper, std::size_t at) {
    hn::StoreU(hn::BitCast(df, hn::BitCast(d32, hn::InterleaveLower(d16, lower, upper))), df, out + at);
    hn::StoreU(hn::BitCast(df, hn::BitCast(d32, hn::InterleaveUpper(d16, lower, upper))), df, out + at + 4);
  };
  std::size_t i = 0;
  for (; i + 16 <= count; i += 16) {
    const auto code = hn::And(hn::LoadU(d8, codes + i), low);
    const auto byte2 = hn::TableLookupBytes(plane2, code), byte3 = hn::TableLookupBytes(plane3, code);
    const auto upper_a = hn::BitCast(d16, hn::InterleaveLower(d8, byte2, byte3));
    const auto upper_b = hn::BitCast(d16, hn::InterleaveUpper(d8, byte2, byte3));
    auto lower_a = hn::Zero(d16), lower_b = hn::Zero(d16);
    if (!is_short) {
      const auto byte0 = hn::TableLookupBytes(plane0, code), byte1 = hn::TableLookupBytes(plane1, code);
      lower_a = hn::BitCast(d16, hn::InterleaveLower(d8, byte0, byte1));
      lower_b = hn::BitCast(d16, hn::InterleaveUpper(d8, byte0, byte1));
    }
    store(lower_a, upper_a, i);
    store(lower_b, upper_b, i + 8);
  }
  return i;
#else
  static_cast<void>(table), static_cast<void>(codes), static_cast<void>(count), static_cast<void>(out);
  return 0;
#endif
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace ballast::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ballast::kernels {
namespace {

HWY_EXPORT(unpack_halves);
HWY_EXPORT(unpack_bits);
HWY_EXPORT(bits_of_bytes_on);
HWY_EXPORT(look_up_vectors);

static_assert(std::endian::native == std::endian::little, "streams of bits are read as little-endian words");

// Eight codes, side by side in the low bits of a word, become a byte each: the word is cut in half three times.
template <unsigned kBits>
std::uint64_t spread(std::uint64_t word) {
  constexpr std::uint64_t k4 = (std::uint64_t{1} << (4 * kBits)) - 1;
  constexpr std::uint64_t k2 = ((std::uint64_t{1} << (2 * kBits)) - 1) * 0x0000000100000001u;
  constexpr std::uint64_t k1 = ((std::uint64_t{1} << kBits) - 1) * 0x0001000100010001u;
  word = (word & k4) | ((word >> (4 * kBits)) & k4) << 32;
  word = (word & k2) | ((word >> (2 * kBits)) & k2) << 16;
  return (word & k1) | ((word >> kBits) & k1) << 8;
}

template <unsigned kBits>
void unpack_stream(std::span<const std::byte> in, std::span<std::uint8_t> codes) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(in.data());
  std::size_t i = HWY_DYNAMIC_DISPATCH(unpack_bits)(kBits, bytes, in.size(), codes.data(), codes.size());
  std::size_t at = i / 8 * kBits;
  for (; i + 8 <= codes.size(); i += 8, at += kBits) {
    std::uint64_t word = 0;
    // A whole word is one instruction; the last few words would reach behind the end.
    std::memcpy(&word, in.data() + at, at + 8 <= in.size() ? 8 : kBits);
    word = spread<kBits>(word);
    std::memcpy(codes.data() + i, &word, 8);
  }
  if (i == codes.size()) return;
  std::uint64_t word = 0;
  std::memcpy(&word, in.data() + at, ((codes.size() - i) * kBits + 7) / 8);
  word = spread<kBits>(word);
  std::memcpy(codes.data() + i, &word, codes.size() - i);
}

void unpack_nibbles(std::span<const std::byte> in, std::span<std::uint8_t> codes) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(in.data());
  const std::size_t done = HWY_DYNAMIC_DISPATCH(unpack_halves)(bytes, codes.size() / 2, false, codes.data());
  unpack_stream<4>(in.subspan(done), codes.subspan(2 * done));
}

void copy_codes(std::span<const std::byte> in, std::span<std::uint8_t> codes) {
  if (!codes.empty()) std::memcpy(codes.data(), in.data(), codes.size());
}

}  // namespace

void unpack_codes(unsigned bits, std::span<const std::byte> in, std::span<std::uint8_t> codes) noexcept {
  using Unpack = void (*)(std::span<const std::byte>, std::span<std::uint8_t>);
  constexpr std::array<Unpack, 8> kUnpack = {unpack_stream<1>, unpack_stream<2>, unpack_stream<3>, unpack_nibbles,
                                             unpack_stream<5>, unpack_stream<6>, unpack_stream<7>, copy_codes};
  kUnpack[bits - 1](in, codes);
}

void bits_of_bytes(unsigned shift, unsigned mask, std::span<const std::byte> in, std::uint8_t* out) noexcept {
  HWY_DYNAMIC_DISPATCH(bits_of_bytes_on)
  (shift, mask, reinterpret_cast<const std::uint8_t*>(in.data()), in.size(), out);
}

void unpack_high_halves_first(std::span<const std::byte> in, std::span<std::uint8_t> codes) noexcept {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(in.data());
  const std::size_t done = HWY_DYNAMIC_DISPATCH(unpack_halves)(bytes, codes.size() / 2, true, codes.data());
  for (std::size_t i = 2 * done; i < codes.size(); ++i)
    codes[i] = static_cast<std::uint8_t>(i % 2 == 0 ? bytes[i / 2] >> 4 : bytes[i / 2] & 15);
}

void look_up(const CodeTable& table, std::span<const std::uint8_t> codes, float* out) noexcept {
  std::size_t i = HWY_DYNAMIC_DISPATCH(look_up_vectors)(table.data(), codes.data(), codes.size(), out);
  for (; i < codes.size(); ++i) out[i] = table[codes[i] & 15];
}

}  // namespace ballast::kernels
#endif  // HWY_ONCE
