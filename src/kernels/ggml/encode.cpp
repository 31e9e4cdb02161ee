#include "kernels/ggml/encode.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include <fmt/format.h>
#include <ballast/error.hpp>

#include "kernels/ggml/decode.hpp"
#include "kernels/ggml/encode_simd.hpp"
#include "kernels/ggml/encode_weights.hpp"

namespace ballast::kernels {
namespace {

EncodeFamily family_of(DType type, bool has_importance) noexcept {
  switch (type) {
    case DType::q4_0:
    case DType::q4_1:
    case DType::q5_0:
    case DType::q5_1: return has_importance ? encode_weighted : encode_classic;
    case DType::q8_0:
    case DType::q8_k: return encode_classic;
    case DType::q2_k:
    case DType::q4_k:
    case DType::q5_k: return has_importance ? encode_weighted : encode_from_min;
    case DType::q3_k: return has_importance ? encode_weighted : encode_around_zero;
    case DType::q6_k:
    case DType::iq4_nl:
    case DType::iq4_xs: return encode_around_zero;
    case DType::mxfp4:
    case DType::nvfp4:
    case DType::tq1_0:
    case DType::tq2_0:
    case DType::q1_0:
    case DType::q2_0: return encode_small;
    case DType::iq2_xxs:
    case DType::iq2_xs:
    case DType::iq2_s:
    case DType::iq3_xxs:
    case DType::iq3_s: return encode_grid;
    case DType::iq1_s:
    case DType::iq1_m: return encode_ternary;
    default: return nullptr;
  }
}

// Elements are encoded so few at a time that they stay in the first-level cache between the search for a value that is
// not finite and the encoding.
constexpr std::size_t kStageElements = Weights::kStageElements;

void make_finite(std::span<const float> values, float* out) {
  for (const float value : values) *out++ = made_finite(value);
}

// No scale of any type overflows below this magnitude. The first one that does is NVFP4's, which ends at 448 times 6.
constexpr float kAlwaysReached = 2048;

// Some blocks are right although a value is far off: those of less than two bits, and those that give up a value which
// does not matter for others that do.
enum class Fit : std::uint8_t { close, loose };

Fit fit_of(DType type, bool has_importance) {
  const EncodeFamily family = family_of(type, has_importance);
  return has_importance || family == encode_grid || family == encode_ternary ? Fit::loose : Fit::close;
}

// Whether the block lost this finite value; `most` is the magnitude of the block's value farthest from zero.
bool is_lost(DType type, Fit fit, float value, float decoded, float most) {
  if (!std::isfinite(decoded)) return true;
  if (fit == Fit::loose) return std::fabs(value) > most / 2 && std::fabs(decoded) < std::fabs(value) / 16;
  // The next code after 6 would be 8, so 7 times the largest scale is half-way.
  if (type == DType::nvfp4) return std::fabs(value) > 7 * 448.0F;
  // One bit keeps only the sign of a value. The error of every other type is below half of the farthest value, plus a
  // little for the rounding of its scale, unless the search found no scale.
  return type != DType::q1_0 && std::fabs(decoded - value) > 0.625F * most;
}

Overflows find_lost(DType type, Fit fit, std::span<const float> values, const std::uint8_t* blocks) {
  const DTypeInfo& block = info(type);
  Overflows found;
  float decoded[256];
  for (; !values.empty(); values = values.subspan(block.block_elements), blocks += block.block_bytes) {
    const auto some = values.first(block.block_elements);
    const float most = farthest(some.data(), some.size());
    if (most < kAlwaysReached) continue;
    decode_blocks(type, std::as_bytes(std::span(blocks, block.block_bytes)), std::span(decoded, some.size()));
    for (std::size_t i = 0; i < some.size(); ++i) {
      if (!std::isfinite(some[i]) || !is_lost(type, fit, some[i], decoded[i], most)) continue;
      found.add({1, static_cast<double>(some[i]), type});
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

// `importance` is empty if there is none, or if the type does not take it.
Overflows encode(DType type, std::span<const float> values, std::span<const float> importance,
                 std::span<std::byte> blocks) {
  check_sizes(type, values.size(), blocks.size());
  const EncodeFamily family = family_of(type, !importance.empty());
  const Fit fit = fit_of(type, !importance.empty());
  const DTypeInfo& block = info(type);
  auto* out = reinterpret_cast<std::uint8_t*>(blocks.data());
  alignas(64) float stage[kStageElements];
  Weights weights(type, values, importance);
  Overflows overflows;
  while (!values.empty()) {
    const auto some = values.first(std::min(kStageElements, values.size()));
    const std::size_t count = some.size() / block.block_elements;
    const float most = farthest(some.data(), some.size());
    if (!std::isfinite(most)) make_finite(some, stage);
    const float* finite = std::isfinite(most) ? some.data() : stage;
    family(type, finite, weights.next(finite, some.size()), count, out);
    if (!(most < kAlwaysReached)) overflows.add(find_lost(type, fit, some, out));
    values = values.subspan(some.size());
    out += count * block.block_bytes;
  }
  return overflows;
}

void check_can_encode(DType type) {
  if (!can_encode(type)) throw Error(Errc::unsupported, fmt::format("values cannot be encoded to {}", name(type)));
}

}  // namespace

bool can_encode(DType type) noexcept { return family_of(type, false) != nullptr; }

bool needs_importance(DType type) noexcept {
  return type == DType::iq1_s || type == DType::iq2_xxs || type == DType::iq2_xs;
}

Overflows encode_blocks(DType type, std::span<const float> values, std::span<std::byte> blocks) {
  check_can_encode(type);
  if (needs_importance(type)) {
    throw Error(Errc::invalid_argument, fmt::format("values are encoded to {} with importance only", name(type)))
        .hint("take the importance of the elements from an importance matrix, or another type");
  }
  return encode(type, values, {}, blocks);
}

Overflows encode_rows(DType type, std::span<const float> values, std::span<const float> importance,
                      std::span<std::byte> blocks) {
  check_can_encode(type);
  const std::size_t row = importance.size();
  if (row == 0 || row % info(type).block_elements != 0 || values.size() % row != 0) {
    throw Error(Errc::invalid_argument,
                fmt::format("{} values are no rows of {}, each with the importance of {} elements", values.size(),
                            name(type), row));
  }
  return encode(type, values, takes_importance(type) ? importance : std::span<const float>(), blocks);
}

std::optional<std::size_t> find_not_finite(std::span<const float> values) {
  if (values.empty() || std::isfinite(farthest(values.data(), values.size()))) return std::nullopt;
  const auto found = std::ranges::find_if(values, [](float value) { return !std::isfinite(value); });
  return static_cast<std::size_t>(found - values.begin());
}

}  // namespace ballast::kernels
