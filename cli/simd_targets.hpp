// The x86 targets of Highway that the processor supports.
#pragma once

#include <cstdint>

#include <hwy/targets.h>

namespace ballast::cli {

// Highway defines the features that each target needs (hwy/set_macros-inl.h compiles with just these features).
inline std::int64_t simd_targets() {
  __builtin_cpu_init();
  const auto all = [](auto... has) { return (has && ...); };
#define HAS(feature) (__builtin_cpu_supports(feature) != 0)
  std::int64_t targets = HWY_ENABLED_BASELINE | HWY_EMU128 | HWY_SCALAR;
  if (!all(HAS("sse2"), HAS("sse3"), HAS("ssse3"))) return targets;
  targets |= HWY_SSSE3;
  if (!all(HAS("sse4.1"), HAS("sse4.2"), HAS("pclmul"), HAS("aes"))) return targets;
  targets |= HWY_SSE4;
  if (!all(HAS("avx"), HAS("avx2"), HAS("lzcnt"), HAS("bmi"), HAS("bmi2"), HAS("fma"), HAS("f16c"))) return targets;
  targets |= HWY_AVX2;
  if (!all(HAS("avx512f"), HAS("avx512vl"), HAS("avx512dq"), HAS("avx512bw"), HAS("avx512cd"))) return targets;
  targets |= HWY_AVX3;
  if (!all(HAS("avx512vnni"), HAS("vpclmulqdq"), HAS("avx512vbmi"), HAS("avx512vbmi2"), HAS("vaes"),
           HAS("avx512vpopcntdq"), HAS("avx512bitalg"), HAS("gfni")))
    return targets;
  return targets | HWY_AVX3_DL;
#undef HAS
}

}  // namespace ballast::cli
