#include "kernels/ggml/encode.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include <fmt/format.h>
#include <ballast/error.hpp>

#include "kernels/ggml/decode.hpp"
#include "kernels/ggml/encode_simd.hpp"

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

// Elements are encoded so few at a time that they stay in the first-level cache between the search for a value that is
// not finite and the encoding. The number is a whole number of blocks of any type.
constexpr std::size_t kStageElements = 2048;

void make_finite(std::span<const float> values, float* out) {
  constexpr float kMost = std::numeric_limits<float>::max();
  for (const float value : values) *out++ = std::isnan(value) ? 0 : std::clamp(value, -kMost, kMost);
}

// No scale of any type overflows below this magnitude. The first one that does is NVFP4's, which ends at 448 times 6.
constexpr float kAlwaysReached = 2048;

// Whether the block lost this finite value; `most` is the magnitude of the block's value farthest from zero.
bool is_lost(DType type, float value, float decoded, float most) {
  if (!std::isfinite(decoded)) return true;
  // The next code after 6 would be 8, so 7 times the largest scale is half-way.
  if (type == DType::nvfp4) return std::fabs(value) > 7 * 448.0F;
  // One bit keeps only the sign of a value. The error of every other type is below half of the farthest value, plus a
  // little for the rounding of its scale, unless the search found no scale.
  return type != DType::q1_0 && std::fabs(decoded - value) > 0.625F * most;
}

Overflows find_lost(DType type, std::span<const float> values, const std::uint8_t* blocks) {
  const DTypeInfo& block = info(type);
  Overflows found;
  float decoded[256];
  for (; !values.empty(); values = values.subspan(block.block_elements), blocks += block.block_bytes) {
    const auto some = values.first(block.block_elements);
    const float most = farthest(some.data(), some.size());
    if (most < kAlwaysReached) continue;
    decode_blocks(type, std::as_bytes(std::span(blocks, block.block_bytes)), std::span(decoded, some.size()));
    for (std::size_t i = 0; i < some.size(); ++i) {
      if (!std::isfinite(some[i]) || !is_lost(type, some[i], decoded[i], most)) continue;
      found.add({1, static_cast<double>(some[i])});
    }
  }
  return found;
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

Overflows encode_blocks(DType type, std::span<const float> values, std::span<std::byte> blocks) {
  const EncodeFamily family = family_of(type);
  if (family == nullptr) throw Error(Errc::unsupported, fmt::format("values cannot be encoded to {}", name(type)));
  check_sizes(type, values.size(), blocks.size());
  const DTypeInfo& block = info(type);
  auto* out = reinterpret_cast<std::uint8_t*>(blocks.data());
  alignas(64) float stage[kStageElements];
  Overflows overflows;
  while (!values.empty()) {
    const auto some = values.first(std::min(kStageElements, values.size()));
    const std::size_t count = some.size() / block.block_elements;
    const float most = farthest(some.data(), some.size());
    if (!std::isfinite(most)) make_finite(some, stage);
    family(type, std::isfinite(most) ? some.data() : stage, count, out);
    if (!(most < kAlwaysReached)) overflows.add(find_lost(type, some, out));
    values = values.subspan(some.size());
    out += count * block.block_bytes;
  }
  return overflows;
}

std::optional<std::size_t> find_not_finite(std::span<const float> values) {
  if (values.empty() || std::isfinite(farthest(values.data(), values.size()))) return std::nullopt;
  const auto found = std::ranges::find_if(values, [](float value) { return !std::isfinite(value); });
  return static_cast<std::size_t>(found - values.begin());
}

}  // namespace ballast::kernels
