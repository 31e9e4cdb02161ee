#include "kernels/ggml/decode.hpp"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>
#include <ballast/error.hpp>

#include "kernels/cast.hpp"
#include "kernels/cast_simd.hpp"
#include "kernels/ggml/decode_simd.hpp"
#include "kernels/stream.hpp"

namespace ballast::kernels {
namespace {

DecodeFamily family_of(DType type) noexcept {
  switch (type) {
    case DType::q4_0:
    case DType::q4_1:
    case DType::q5_0:
    case DType::q5_1:
    case DType::q8_0:
    case DType::q8_1:
    case DType::q8_k: return decode_classic;
    case DType::q2_k:
    case DType::q3_k:
    case DType::q4_k:
    case DType::q5_k:
    case DType::q6_k: return decode_k;
    case DType::iq1_s:
    case DType::iq1_m:
    case DType::iq2_xxs:
    case DType::iq2_xs:
    case DType::iq2_s:
    case DType::iq3_xxs:
    case DType::iq3_s: return decode_iq;
    case DType::iq4_nl:
    case DType::iq4_xs:
    case DType::mxfp4:
    case DType::nvfp4:
    case DType::tq1_0:
    case DType::tq2_0:
    case DType::q1_0:
    case DType::q2_0: return decode_small;
    default: return nullptr;
  }
}

struct Blocks {
  DType type;
  DecodeFamily family;
  const std::byte* in;
  std::size_t count;

  void decode(std::size_t first, std::size_t some, std::byte* out, bool stream) const {
    const auto* begin = reinterpret_cast<const std::uint8_t*>(in) + first * info(type).block_bytes;
    family(type, begin, some, reinterpret_cast<float*>(out), stream);
  }
};

void decode_to_f32(const Blocks& blocks, std::span<std::byte> out) {
  const bool is_aligned = reinterpret_cast<std::uintptr_t>(out.data()) % kStreamAlignment == 0;
  const bool stream = is_aligned && out.size() >= kStreamCastFromBytes;
  blocks.decode(0, blocks.count, out.data(), stream);
  if (stream) finish_streaming();
}

// Decodes through F32, so few blocks at a time that they stay in the first-level cache. Streaming the output gained
// nothing: streaming cannot overlap with the decoding here, as it does in the decoders to F32.
Overflows decode_to_16_bits(const Blocks& blocks, DType out_type, std::span<std::byte> out) {
  Overflows overflows;
  constexpr std::size_t kStageElements = 1024;  // a whole number of blocks of any type
  alignas(64) std::byte stage[kStageElements * sizeof(float)];
  const std::size_t block_elements = info(blocks.type).block_elements, step = kStageElements / block_elements;
  for (std::size_t first = 0; first < blocks.count; first += step) {
    const std::size_t some = std::min(step, blocks.count - first), elements = some * block_elements;
    blocks.decode(first, some, stage, false);
    overflows.add(cast(DType::f32, out_type, {stage, elements * sizeof(float)},
                       out.subspan(first * block_elements * 2, elements * 2)));
  }
  return overflows;
}

void check_sizes(DType type, std::size_t in_bytes, DType out_type, std::size_t out_bytes) {
  const DTypeInfo& in = info(type);
  const std::size_t count = in_bytes / in.block_bytes;
  if (in_bytes % in.block_bytes == 0 && out_bytes == count * in.block_elements * info(out_type).block_bytes) return;
  throw Error(Errc::invalid_argument, fmt::format("{} bytes of {} do not decode to {} bytes of {}", in_bytes, in.name,
                                                  out_bytes, name(out_type)));
}

}  // namespace

bool can_decode(DType type) noexcept { return family_of(type) != nullptr || can_cast(type, DType::f32); }

void decode_blocks(DType type, std::span<const std::byte> blocks, std::span<float> out) {
  decode_blocks(type, blocks, DType::f32, std::as_writable_bytes(out));
}

Overflows decode_blocks(DType type, std::span<const std::byte> blocks, DType out_type, std::span<std::byte> out) {
  if (!can_decode(type)) throw Error(Errc::unsupported, fmt::format("{} cannot be decoded", name(type)));
  if (out_type != DType::f32 && out_type != DType::f16 && out_type != DType::bf16)
    throw Error(Errc::unsupported, fmt::format("{} cannot be decoded to {}", name(type), name(out_type)))
        .hint("ask for F32, F16 or BF16");
  check_sizes(type, blocks.size(), out_type, out.size());
  if (blocks.empty()) return {};
  const DecodeFamily family = family_of(type);
  if (family == nullptr) return cast(type, out_type, blocks, out);
  const Blocks all = {type, family, blocks.data(), blocks.size() / info(type).block_bytes};
  if (out_type != DType::f32) return decode_to_16_bits(all, out_type, out);
  decode_to_f32(all, out);
  return {};
}

}  // namespace ballast::kernels
