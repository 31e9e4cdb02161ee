#include "kernels/ggml/encode_simd.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/ggml/encode_classic.cpp"
#include <hwy/foreach_target.h>  // includes this file again for every target
// Included after foreach_target.h, because it depends on the target.
#include "kernels/ggml/encode_inl.hpp"

// The blocks of 32 elements and one scale: Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, and the similar Q8_K. Also farthest(), which
// every type needs: how far elements are from zero.
HWY_BEFORE_NAMESPACE();
namespace ballast::kernels {
namespace HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR
void encode_classic_on_target(DType type, const float* in, const float* weights, std::size_t count, std::uint8_t* out) {
  encode_plainly(type, in, weights, count, out);
}
float farthest_on_target(const float* in, std::size_t count) {
  std::uint32_t most = 0;  // magnitudes have the same order as their bits
  for (std::size_t i = 0; i < count; ++i) most = std::max(most, std::bit_cast<std::uint32_t>(in[i]) & 0x7FFF'FFFF);
  return std::bit_cast<float>(most);
}
#else

float farthest_on_target(const float* in, std::size_t count) {
  const I32 d;
  Ints most = hn::Zero(d);  // magnitudes have the same order as their bits
  for (std::size_t i = 0; i < count; i += kLanes)
    most = hn::Max(most, hn::And(hn::BitCast(d, load(in + i)), hn::Set(d, 0x7FFF'FFFF)));
  return std::bit_cast<float>(hn::GetLane(hn::MaxOfLanes(d, most)));
}

// The types of 32 elements are encoded as many blocks at once as there are lanes. So one division gives all of their
// scales, and the codes of a block do not wait for a division of its own. A type says how far its elements reach, which
// is kSteps times the scale, and puts a block for a scale that is known.
struct Reach {
  float reach, min;
};
struct Scale {
  float d, inverse, min;
};

HWY_INLINE Floats inverses(Floats d) {
  const Floats result = hn::Div(all(1), d);
  return hn::IfThenElseZero(hn::Le(hn::Abs(result), all(std::numeric_limits<float>::max())), result);
}

template <class Type>
void encode_32s(DType type, const float* in, std::size_t count, std::uint8_t* out) {
  alignas(64) float d[kLanes], inverse[kLanes], min[kLanes];
  for (; count >= kLanes; count -= kLanes) {
    for (std::size_t i = 0; i < kLanes; ++i) {
      const Reach found = Type::reach(in + 32 * i);
      d[i] = found.reach;
      min[i] = found.min;
    }
    const Floats scales = hn::Div(hn::Load(F32(), d), all(Type::kSteps));
    hn::Store(scales, F32(), d);
    hn::Store(inverses(scales), F32(), inverse);
    for (std::size_t i = 0; i < kLanes; ++i, in += 32, out += Type::kBytes)
      Type::put(in, {d[i], inverse[i], min[i]}, out);
  }
  encode_plainly(type, in, nullptr, count, out);
}

struct Q8_0 {
  static constexpr std::size_t kBytes = 34;
  static constexpr float kSteps = 127;

  static HWY_INLINE Reach reach(const float* x) { return {largest_magnitude<32>(x), 0}; }
  static HWY_INLINE void put(const float* x, const Scale& scale, std::uint8_t* out) {
    const hn::Rebind<std::int8_t, F32> d8;
    put_f16(scale.d, out);
    auto* codes = reinterpret_cast<std::int8_t*>(out + 2);
    for (std::size_t i = 0; i < 32; i += kLanes)
      hn::StoreU(hn::DemoteTo(d8, rounded(hn::Mul(load(x + i), all(scale.inverse)))), d8, codes + i);
  }
};

// Q4_0 and Q5_0
template <int kCodes>
struct AroundZero {
  static constexpr float kSteps = -kCodes / 2.0F;

  static HWY_INLINE Reach reach(const float* x) { return {farthest_from_zero<32>(x), 0}; }
  static HWY_INLINE auto coder(const Scale& scale) {
    return [inverse = all(scale.inverse)](Floats values) {
      return cut(hn::Add(hn::Mul(values, inverse), all(kCodes / 2.0F + 0.5F)), kCodes - 1);
    };
  }
};

// Q4_1 and Q5_1. If the smallest number is zero and there are several zeros, the sign of the first is kept.
template <int kCodes>
struct AboveMin {
  static constexpr float kSteps = kCodes - 1;

  static HWY_INLINE Reach reach(const float* x) {
    const auto [min, max] = extremes<32>(x);
    if (HWY_LIKELY(min != 0)) return {max - min, min};
    while (*x != 0) ++x;
    return {max == 0 ? 0 : max, *x};
  }
  static HWY_INLINE auto coder(const Scale& scale) {
    return [min = all(scale.min), inverse = all(scale.inverse)](Floats values) {
      return cut(hn::Add(hn::Mul(hn::Sub(values, min), inverse), all(0.5F)), kCodes - 1);
    };
  }
};

struct Q4_0 : AroundZero<16> {
  static constexpr std::size_t kBytes = 18;

  static HWY_INLINE void put(const float* x, const Scale& scale, std::uint8_t* out) {
    put_f16(scale.d, out);
    put_nibbles<16>(x, out + 2, coder(scale));
  }
};

struct Q4_1 : AboveMin<16> {
  static constexpr std::size_t kBytes = 20;

  static HWY_INLINE void put(const float* x, const Scale& scale, std::uint8_t* out) {
    put_f16(scale.d, out);
    put_f16(scale.min, out + 2);
    put_nibbles<16>(x, out + 4, coder(scale));
  }
};

// Writes the fifth bits, and then the nibbles below them.
template <class Code>
HWY_INLINE void put_five_bits(const float* x, std::uint8_t* out, Code code) {
  std::uint32_t fifth_bits = 0;
  std::size_t i = 0;
  put_nibbles<16>(x, out + 4, [&](Floats values) {
    const Ints codes = code(values);
    const std::uint32_t bits = bits_from(hn::RebindMask(F32(), hn::Gt(codes, hn::Set(I32(), 15))));
    // The vectors come alternately from the first 16 elements and from the last 16.
    fifth_bits |= bits << (i % 2 * 16 + i / 2 * kLanes);
    ++i;
    return hn::And(codes, hn::Set(I32(), 15));
  });
  plain::put_u32(fifth_bits, out);
}

struct Q5_0 : AroundZero<32> {
  static constexpr std::size_t kBytes = 22;

  static HWY_INLINE void put(const float* x, const Scale& scale, std::uint8_t* out) {
    put_f16(scale.d, out);
    put_five_bits(x, out + 2, coder(scale));
  }
};

struct Q5_1 : AboveMin<32> {
  static constexpr std::size_t kBytes = 24;

  static HWY_INLINE void put(const float* x, const Scale& scale, std::uint8_t* out) {
    put_f16(scale.d, out);
    put_f16(scale.min, out + 2);
    put_five_bits(x, out + 4, coder(scale));
  }
};

HWY_INLINE void to_q8_k(const float* x, std::uint8_t* out) {
  const float farthest = farthest_from_zero<256>(x);
  if (farthest == 0) return static_cast<void>(std::memset(out, 0, 292));
  const float iscale = -127 / farthest;
  plain::put_u32(std::bit_cast<std::uint32_t>(1 / iscale), out);
  // A code that is out of range wraps, as in ggml.
  each_code(x, 256, out + 4, [&](Floats values) {
    const Ints codes = hn::Min(nearest(hn::Mul(all(iscale), values)), hn::Set(I32(), 127));
    return hn::And(codes, hn::Set(I32(), 255));
  });
  plain::put_q8_k_sums(out);
}

void encode_classic_on_target(DType type, const float* in, const float*, std::size_t count, std::uint8_t* out) {
  switch (type) {
    case DType::q4_0: return encode_32s<Q4_0>(type, in, count, out);
    case DType::q4_1: return encode_32s<Q4_1>(type, in, count, out);
    case DType::q5_0: return encode_32s<Q5_0>(type, in, count, out);
    case DType::q5_1: return encode_32s<Q5_1>(type, in, count, out);
    case DType::q8_0: return encode_32s<Q8_0>(type, in, count, out);
    default: return encode_each<to_q8_k>(type, in, count, out);
  }
}

#endif

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace ballast::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ballast::kernels {

HWY_EXPORT(farthest_on_target);
HWY_EXPORT(encode_classic_on_target);

float farthest(const float* in, std::size_t count) { return HWY_DYNAMIC_DISPATCH(farthest_on_target)(in, count); }

void encode_classic(DType type, const float* in, const float* weights, std::size_t count, std::uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(encode_classic_on_target)(type, in, weights, count, out);
}

}  // namespace ballast::kernels
#endif
