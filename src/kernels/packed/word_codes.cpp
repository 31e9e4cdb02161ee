#include "kernels/packed/word_codes.hpp"

#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/packed/word_codes.cpp"
#include <hwy/foreach_target.h>  // includes this file again for every target
// Included after foreach_target.h, because it depends on the target.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace ballast::kernels {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

template <class D>
HWY_INLINE void word_codes_from(D d, const std::byte* low, const std::byte* high, unsigned shift, unsigned bits,
                                std::size_t& i, std::size_t count, float* out) {
  const hn::RebindToUnsigned<D> du;
  const hn::RebindToSigned<D> di;
  const auto mask = hn::Set(du, (1u << bits) - 1);
  const bool crosses = shift + bits > 32;
  for (; i + hn::Lanes(d) <= count; i += hn::Lanes(d)) {
    const auto words = hn::LoadU(du, reinterpret_cast<const std::uint32_t*>(low + i * 4));
    auto codes = hn::ShiftRightSame(words, static_cast<int>(shift));
    if (crosses) {
      const auto next = hn::LoadU(du, reinterpret_cast<const std::uint32_t*>(high + i * 4));
      codes = hn::Or(codes, hn::ShiftLeftSame(next, static_cast<int>(32 - shift)));
    }
    hn::StoreU(hn::ConvertTo(d, hn::BitCast(di, hn::And(codes, mask))), d, out + i);
  }
}

void word_codes_on(const std::byte* low, const std::byte* high, unsigned shift, unsigned bits, std::size_t count,
                   float* out) {
  std::size_t i = 0;
  word_codes_from(hn::ScalableTag<float>(), low, high, shift, bits, i, count, out);
  word_codes_from(hn::CappedTag<float, 1>(), low, high, shift, bits, i, count, out);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace ballast::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ballast::kernels {
namespace {
HWY_EXPORT(word_codes_on);
}  // namespace

void word_codes(const std::byte* low, const std::byte* high, unsigned shift, unsigned bits, std::size_t count,
                float* out) noexcept {
  HWY_DYNAMIC_DISPATCH(word_codes_on)(low, high, shift, bits, count, out);
}

void unpack_words(unsigned bits, unsigned in_word, std::span<const std::byte> words,
                  std::span<std::uint8_t> codes) noexcept {
  for (std::size_t i = 0; i < codes.size(); words = words.subspan(4)) {
    std::uint32_t word;
    std::memcpy(&word, words.data(), sizeof word);
    for (unsigned k = 0; k < in_word && i < codes.size(); ++k, word >>= bits)
      codes[i++] = static_cast<std::uint8_t>(word & ((1u << bits) - 1));
  }
}

namespace {

// The four halves of bytes in 16 bits, each in the low bits of 16 bits of its own.
std::uint64_t spread_halves(std::uint64_t word) {
  word = (word | word << 24) & 0x000000FF000000FFu;
  return (word | word << 12) & 0x000F000F000F000Fu;
}

}  // namespace

void awq_codes(const std::byte* words, std::size_t count, std::uint8_t* out) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    std::uint32_t word;
    std::memcpy(&word, words + i * 4, 4);
    // The codes of the low half of the word go to the even bytes, those of the high half to the odd ones.
    const std::uint64_t codes = spread_halves(word & 0xFFFF) | spread_halves(word >> 16) << 8;
    std::memcpy(out + i * 8, &codes, sizeof codes);
  }
}

}  // namespace ballast::kernels
#endif  // HWY_ONCE
