// The code that the families of decode_simd.hpp share, for one instruction set. It is included once for each
// instruction set, inside the code that <hwy/foreach_target.h> repeats, so it has no #pragma once.
//
// Nearly every block type is decoded in two steps. The first step unpacks the block: bits become codes, one int8 an
// element, and scales become floats, one for each group of elements. The second step is the same for all types:
// element = scale * code - min, multiplied and subtracted separately, as ggml does. Codes and scales lie on the stack
// between the steps, in the first-level cache.
//
// If possible, the second step reads in pieces that are no larger than the first step wrote them: only such pieces can
// be read before they have arrived in the cache.
#if defined(BALLAST_GGML_DECODE_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef BALLAST_GGML_DECODE_INL
#undef BALLAST_GGML_DECODE_INL
#else
#define BALLAST_GGML_DECODE_INL
#endif

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <hwy/highway.h>
#include <ballast/float16.hpp>

#include "kernels/ggml/decode_plain.hpp"
#include "kernels/ggml/decode_simd.hpp"

HWY_BEFORE_NAMESPACE();
namespace ballast::kernels {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR

// If there is no vector code, the reference decodes. It writes floats one by one, so its output must be aligned: for an
// unaligned output, it decodes into a buffer that is then copied.
void decode_plainly(DType type, const std::uint8_t* in, std::size_t count, float* out) {
  constexpr std::size_t kMost = 256;  // elements of a block
  const auto decode = plain::decoder(type);
  const std::size_t elements = info(type).block_elements;
  const bool is_aligned = reinterpret_cast<std::uintptr_t>(out) % alignof(float) == 0;
  auto* at = reinterpret_cast<std::byte*>(out);
  for (; count > 0; --count, in += info(type).block_bytes, at += elements * sizeof(float)) {
    if (is_aligned) {
      decode(in, reinterpret_cast<float*>(at));
    } else {
      float aside[kMost];
      decode(in, aside);
      std::memcpy(at, aside, elements * sizeof(float));
    }
  }
}

#else

template <class Word>
HWY_INLINE Word load(const std::uint8_t* in) {
  Word word;
  std::memcpy(&word, in, sizeof word);
  return word;
}

HWY_INLINE float f16_from(std::uint16_t bits) {
#if (HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2) || HWY_ARCH_ARM_A64
  const auto lanes = hn::BitCast(hn::FixedTag<hwy::float16_t, 4>(), hn::Set(hn::FixedTag<std::uint16_t, 4>(), bits));
  return hn::GetLane(hn::PromoteTo(hn::FixedTag<float, 4>(), lanes));
#else
  return float16{bits};
#endif
}
HWY_INLINE float f16_at(const std::uint8_t* in) { return f16_from(load<std::uint16_t>(in)); }

template <bool kStream, class D>
HWY_INLINE void put(hn::VFromD<D> elements, D d, float* out) {
  if constexpr (kStream) {
    hn::Stream(elements, d, out);
  } else {
    hn::StoreU(elements, d, out);
  }
}

template <class D>
HWY_INLINE hn::VFromD<D> floats_from_codes(D d, const std::int8_t* codes) {
  const hn::Rebind<std::int32_t, D> d32;
  const hn::Rebind<std::int8_t, D> d8;
  return hn::ConvertTo(d, hn::PromoteTo(d32, hn::LoadU(d8, codes)));
}

template <class Type>
struct Unpacked {
  alignas(64) std::int8_t codes[Type::kElements];
  alignas(64) float scales[Type::kElements / Type::kGroup];
  alignas(64) float mins[Type::kHasMins ? Type::kElements / Type::kGroup : 1];
};

// A block type in two steps: how many elements and bytes it has, how many elements share a scale (at least 16, the most
// that a vector has here), and whether it has mins. Type::unpack is the first step.
template <class Type, std::size_t kElementCount, std::size_t kByteCount, std::size_t kGroupSize, bool kWithMins = false>
struct TwoSteps {
  static constexpr std::size_t kElements = kElementCount, kBytes = kByteCount, kGroup = kGroupSize;
  static constexpr bool kHasMins = kWithMins;

  template <bool kStream>
  static HWY_INLINE void decode(const std::uint8_t* in, float* out) {
    const hn::CappedTag<float, 16> d;
    Unpacked<Type> block;
    Type::unpack(in, block);
    const std::int8_t* codes = Type::codes(in, block);
    for (std::size_t i = 0; i < kElements; i += hn::Lanes(d)) {
      auto elements = hn::Mul(floats_from_codes(d, codes + i), hn::Set(d, block.scales[i / kGroup]));
      if constexpr (kHasMins) elements = hn::Sub(elements, hn::Set(d, block.mins[i / kGroup]));
      put<kStream>(elements, d, out + i);
    }
  }

  static HWY_INLINE const std::int8_t* codes(const std::uint8_t*, const Unpacked<Type>& block) { return block.codes; }
};

template <bool kStream, class Type>
void decode_run(const std::uint8_t* in, std::size_t count, float* out) {
  for (; count > 0; --count, in += Type::kBytes, out += Type::kElements) Type::template decode<kStream>(in, out);
}

template <class Type>
void decode_each(const std::uint8_t* in, std::size_t count, float* out, bool stream) {
  return stream ? decode_run<true, Type>(in, count, out) : decode_run<false, Type>(in, count, out);
}

// Vectors of bytes, as large as the processor has them, up to kCount.
template <std::size_t kCount>
using U8 = hn::CappedTag<std::uint8_t, kCount>;

template <class D>
HWY_INLINE void store_codes(hn::VFromD<D> codes, D d, std::int8_t* out) {
  hn::StoreU(codes, d, reinterpret_cast<std::uint8_t*>(out));
}

// Shifts each byte to the right or (if kShift is below zero) to the left, and applies the mask. There are no shifts of
// bytes, so larger words are shifted, and the mask removes the bits that come in from the neighbour.
template <int kShift, int kMask, class D>
HWY_INLINE hn::VFromD<D> field(D d, hn::VFromD<D> bytes) {
  const hn::Repartition<std::uint16_t, D> d16;
  const auto words = hn::BitCast(d16, bytes);
  const auto mask = hn::Set(d, kMask);
  if constexpr (kShift < 0) {
    return hn::And(hn::BitCast(d, hn::ShiftLeft<-kShift>(words)), mask);
  } else {
    return hn::And(hn::BitCast(d, hn::ShiftRight<kShift>(words)), mask);
  }
}

// For each byte 255 if its bit in `bits` is set, otherwise 0. The first byte has bit `first`, a multiple of 8.
template <class D>
HWY_INLINE hn::VFromD<D> bytes_from_bits(D d, std::uint32_t bits, std::size_t first) {
  alignas(32) static constexpr std::uint8_t kByteOfBit[32] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1,
                                                              2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3};
  const auto spread = hn::BitCast(d, hn::Set(hn::Repartition<std::uint32_t, D>(), bits));
  const auto own_byte = hn::TableLookupBytes(spread, hn::LoadU(d, kByteOfBit + first));
  const auto own_bit = hn::BitCast(d, hn::Set(hn::Repartition<std::uint64_t, D>(), 0x8040'2010'0804'0201));
  return hn::VecFromMask(d, hn::Eq(hn::And(own_byte, own_bit), own_bit));
}

// Looks up signed codes of four bits.
template <class D>
HWY_INLINE hn::VFromD<D> look_up(D d, const std::array<std::int8_t, 16>& values, hn::VFromD<D> codes) {
  const auto table = hn::LoadDup128(d, reinterpret_cast<const std::uint8_t*>(values.data()));
  return hn::TableLookupBytes(table, codes);
}

// The kCount bytes at `in` are low nibbles and then high nibbles; `decode` turns them into codes.
template <std::size_t kCount, class Decode>
HWY_INLINE void unpack_nibbles(const std::uint8_t* in, std::int8_t* codes, Decode decode) {
  const U8<kCount> d;
  for (std::size_t i = 0; i < kCount; i += hn::Lanes(d)) {
    const auto pairs = hn::LoadU(d, in + i);
    store_codes(decode(field<0, 15>(d, pairs), i), d, codes + i);
    store_codes(decode(field<4, 15>(d, pairs), kCount + i), d, codes + kCount + i);
  }
}

// The 32 bytes at `in` are 128 codes: the 32 lowest pairs of bits, then the 32 next pairs, and so on.
template <class Decode>
HWY_INLINE void unpack_pairs(const std::uint8_t* in, std::int8_t* codes, Decode decode) {
  const U8<32> d;
  for (std::size_t i = 0; i < 32; i += hn::Lanes(d)) {
    const auto fours = hn::LoadU(d, in + i);
    store_codes(decode(field<0, 3>(d, fours), i, 0), d, codes + i);
    store_codes(decode(field<2, 3>(d, fours), i, 1), d, codes + 32 + i);
    store_codes(decode(field<4, 3>(d, fours), i, 2), d, codes + 64 + i);
    store_codes(decode(field<6, 3>(d, fours), i, 3), d, codes + 96 + i);
  }
}

// Writes eight scales: d times (each byte of `codes` less kBias).
template <int kBias = 0>
HWY_INLINE void put_scales(std::uint64_t codes, float d, float* out) {
  const hn::CappedTag<float, 8> df;
  std::int8_t bytes[8];
  std::memcpy(bytes, &codes, sizeof bytes);
  for (std::size_t i = 0; i < 8; i += hn::Lanes(df)) {
    const auto code = hn::Sub(floats_from_codes(df, bytes + i), hn::Set(df, static_cast<float>(kBias)));
    hn::StoreU(hn::Mul(hn::Set(df, d), code), df, out + i);
  }
}

inline constexpr std::uint64_t kEachByte = 0x0101'0101'0101'0101;

// Spreads eight nibbles to eight bytes; the function below does the same with eight pairs of bits. The lowest comes
// first.
HWY_INLINE std::uint64_t spread_nibbles(std::uint64_t nibbles) {
  nibbles = (nibbles | nibbles << 16) & 0x0000'FFFF'0000'FFFF;
  nibbles = (nibbles | nibbles << 8) & 0x00FF'00FF'00FF'00FF;
  return (nibbles | nibbles << 4) & 15 * kEachByte;
}
HWY_INLINE std::uint64_t spread_pairs(std::uint64_t pairs) {
  pairs = (pairs | pairs << 24) & 0x0000'00FF'0000'00FF;
  pairs = (pairs | pairs << 12) & 0x000F'000F'000F'000F;
  return (pairs | pairs << 6) & 3 * kEachByte;
}

#endif

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace ballast::kernels
HWY_AFTER_NAMESPACE();

#endif
