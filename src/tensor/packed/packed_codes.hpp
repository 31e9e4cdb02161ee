// PackedCodes: what the codes in the bytes of a quantized weight stand for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <ballast/dtype.hpp>

#include "kernels/packed/byte_codes.hpp"
#include "kernels/packed/codes.hpp"

namespace ballast {

// Of `table`, `field`, `element` and `large_table` one says what a code stands for.
struct PackedCodes {
  unsigned bits = 8;
  unsigned in_word = 0;                  // so many codes in each word of 32 bits, from the low bits on; 0: no gaps
  std::optional<unsigned> word_shift{};  // one code in each word, from this bit on
  bool high_half_first = false;          // codes of 4 bits, of which the first of a byte lies in its high half
  kernels::CodeTable table{};            // what a code of up to 4 bits stands for
  kernels::ByteField field{};            // codes of 5 to 8 bits; or which bits of each byte are a code
  std::optional<DType> element{};        // or elements of this dtype, of 8 bits
  std::vector<float> large_table{};      // or what each of 256 codes stands for

  // As many bytes as `count` codes take, if they begin on a byte.
  std::uint64_t bytes_of(std::uint64_t count) const noexcept {
    if (word_shift) return count * 4;
    if (in_word != 0) return (count / in_word + (count % in_word != 0)) * 4;
    return count / 8 * bits + (count % 8 * bits + 7) / 8;
  }
  std::size_t at_once() const noexcept;  // how many codes decode_codes() takes, and end on a byte
  bool are_small() const noexcept;       // whether `table` says what they stand for
};

PackedCodes integer_codes(unsigned bits, int center);  // unsigned integers of up to 8 bits less `center`
PackedCodes element_codes(DType dtype);                // I8, U8, or a float of 8 bits
PackedCodes fp4_codes();                               // E2M1, the low half of a byte first
PackedCodes doubled_fp4_codes();                       // twice these numbers
PackedCodes table_codes(const kernels::CodeTable& table, bool high_half_first);
PackedCodes table_codes(std::vector<float> table);                       // 256 values
PackedCodes bit_field_codes(unsigned shift, unsigned bits, int center);  // some bits of each byte
PackedCodes word_field_codes(unsigned shift, unsigned bits);             // some bits of each word of 32 bits

inline constexpr std::size_t kCodesAtOnce = 2048;

// The numbers that codes stand for, exactly. `in` has the bytes of the codes, which begin on a byte; there are at most
// codes.at_once() of them.
void decode_codes(const PackedCodes& codes, std::span<const std::byte> in, std::span<float> out) noexcept;

// Small codes as they are, each in a byte.
void unpack_small(const PackedCodes& codes, std::span<const std::byte> in, std::span<std::uint8_t> out) noexcept;

}  // namespace ballast
