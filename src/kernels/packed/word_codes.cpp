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

void order_awq_codes(std::span<std::byte> words) noexcept {
  const auto swap = [](std::uint32_t word, unsigned distance, std::uint32_t mask) {
    const std::uint32_t changed = (word ^ (word >> distance)) & mask;
    return word ^ changed ^ (changed << distance);
  };
  for (std::size_t i = 0; i + 4 <= words.size(); i += 4) {
    std::uint32_t word;
    std::memcpy(&word, words.data() + i, 4);
    // The halves of the word are shuffled into each other in two steps, as those of a deck of cards.
    word = swap(swap(word, 8, 0x0000FF00), 4, 0x00F000F0);
    std::memcpy(words.data() + i, &word, 4);
  }
}

}  // namespace ballast::kernels
#endif  // HWY_ONCE
