// Codes that lie in words one below the other: word i has a code of column i.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace ballast::kernels {

// out[i] = the `bits` bits from `shift` on of the word `low[i]`, continued by the low bits of `high[i]` if they cross
// the end of the word. `high` is not read otherwise, and may be null. 1 <= bits <= 8, shift < 32. No pointer needs to
// be aligned.
void word_codes(const std::byte* low, const std::byte* high, unsigned shift, unsigned bits, std::size_t count,
                float* out) noexcept;

// The first codes of `bits` each that lie in the low bits of words, `in_word` in each. `words` has them all.
void unpack_words(unsigned bits, unsigned in_word, std::span<const std::byte> words,
                  std::span<std::uint8_t> codes) noexcept;

// The eight codes of 4 bits of each word in the order that AWQ has them, put into their own order: the codes of the low
// half of a word go to the even places. `words` has whole words.
void order_awq_codes(std::span<std::byte> words) noexcept;

}  // namespace ballast::kernels
