#include "kernels/ggml_encode.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include <fmt/format.h>
#include <ballast/error.hpp>

#include "kernels/ggml_encode_simd.hpp"

namespace ballast::kernels {
namespace {

EncodeFamily family_of(DType type) noexcept {
  switch (type) {
    case DType::q4_0:
    case DType::q4_1:
    case DType::q5_0:
    case DType::q5_1:
    case DType::q8_0:
    case DType::q8_k: return encode_classic;
    case DType::q2_k:
    case DType::q4_k:
    case DType::q5_k: return encode_from_min;
    case DType::q3_k:
    case DType::q6_k:
    case DType::iq4_nl:
    case DType::iq4_xs: return encode_around_zero;
    case DType::mxfp4:
    case DType::nvfp4:
    case DType::tq1_0:
    case DType::tq2_0:
    case DType::q1_0:
    case DType::q2_0: return encode_small;
    default: return nullptr;
  }
}

// So many elements at a time that they stay in the first-level cache between the look for what is not finite and the
// encoding; a whole number of blocks of any type.
constexpr std::size_t kStageElements = 2048;

void make_finite(std::span<const float> values, float* out) {
  constexpr float kMost = std::numeric_limits<float>::max();
  for (const float value : values) *out++ = std::isnan(value) ? 0 : std::clamp(value, -kMost, kMost);
}

void check_sizes(DType type, std::size_t value_count, std::size_t out_bytes) {
  const DTypeInfo& out = info(type);
  const std::size_t count = out_bytes / out.block_bytes;
  if (out_bytes % out.block_bytes == 0 && value_count == count * out.block_elements) return;
  throw Error(Errc::invalid_argument,
              fmt::format("{} values do not encode to {} bytes of {}", value_count, out_bytes, out.name));
}

}  // namespace

bool can_encode(DType type) noexcept { return family_of(type) != nullptr; }

void encode_blocks(DType type, std::span<const float> values, std::span<std::byte> blocks) {
  const EncodeFamily family = family_of(type);
  if (family == nullptr) throw Error(Errc::unsupported, fmt::format("values cannot be encoded to {}", name(type)));
  check_sizes(type, values.size(), blocks.size());
  const DTypeInfo& block = info(type);
  auto* out = reinterpret_cast<std::uint8_t*>(blocks.data());
  alignas(64) float stage[kStageElements];
  while (!values.empty()) {
    const auto some = values.first(std::min(kStageElements, values.size()));
    const std::size_t count = some.size() / block.block_elements;
    const bool as_they_lie = are_finite(some.data(), some.size());
    if (!as_they_lie) make_finite(some, stage);
    family(type, as_they_lie ? some.data() : stage, count, out);
    values = values.subspan(some.size());
    out += count * block.block_bytes;
  }
}

}  // namespace ballast::kernels
