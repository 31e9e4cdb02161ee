#include "tensor/packed/packed_codes.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <utility>

#include "kernels/cast.hpp"
#include "kernels/packed/word_codes.hpp"

namespace ballast {
namespace {

constexpr kernels::CodeTable kFp4 = {0, 0.5F, 1, 1.5F, 2, 3, 4, 6, -0.0F, -0.5F, -1, -1.5F, -2, -3, -4, -6};

}  // namespace

PackedCodes integer_codes(unsigned bits, int center) {
  PackedCodes codes{.bits = bits};
  if (bits > 4) {
    codes.field.center = static_cast<float>(center);
    return codes;
  }
  for (int code = 0; code < 16; ++code) codes.table[static_cast<std::size_t>(code)] = static_cast<float>(code - center);
  return codes;
}

PackedCodes element_codes(DType dtype) { return {.element = dtype}; }

PackedCodes fp4_codes() { return table_codes(kFp4, false); }

PackedCodes doubled_fp4_codes() {
  kernels::CodeTable doubled = kFp4;
  for (float& value : doubled) value *= 2;
  return table_codes(doubled, false);
}

PackedCodes table_codes(const kernels::CodeTable& table, bool high_half_first) {
  return {.bits = 4, .high_half_first = high_half_first, .table = table};
}

PackedCodes table_codes(std::vector<float> table) { return {.large_table = std::move(table)}; }

PackedCodes bit_field_codes(unsigned shift, unsigned bits, int center) {
  PackedCodes codes = integer_codes(bits, center);
  codes.bits = 8;
  codes.field = {shift, (1u << bits) - 1, 0};
  return codes;
}

PackedCodes word_field_codes(unsigned shift, unsigned bits) { return {.bits = bits, .word_shift = shift}; }

std::size_t PackedCodes::at_once() const noexcept {
  return in_word == 0 ? kCodesAtOnce : kCodesAtOnce / in_word * in_word;
}

bool PackedCodes::are_small() const noexcept {
  return !word_shift && !element && large_table.empty() && (bits <= 4 || field.mask <= 15);
}

void unpack_small(const PackedCodes& codes, std::span<const std::byte> in, std::span<std::uint8_t> out) noexcept {
  assert(out.size() <= codes.at_once());
  const std::span bytes = in.first(codes.bytes_of(out.size()));
  if (codes.bits == 8) return kernels::bits_of_bytes(codes.field.shift, codes.field.mask, bytes, out.data());
  if (codes.in_word != 0) return kernels::unpack_words(codes.bits, codes.in_word, bytes, out);
  if (codes.high_half_first) return kernels::unpack_high_halves_first(bytes, out);
  kernels::unpack_codes(codes.bits, bytes, out);
}

void decode_codes(const PackedCodes& codes, std::span<const std::byte> in, std::span<float> out) noexcept {
  assert(out.size() <= codes.at_once());
  const std::span bytes = in.first(codes.bytes_of(out.size()));
  if (codes.word_shift)
    return kernels::word_codes(bytes.data(), nullptr, *codes.word_shift, codes.bits, out.size(), out.data());
  if (codes.element == DType::f8_e4m3) return kernels::e4m3_numbers(bytes, out.data());
  if (codes.element) {
    kernels::cast(*codes.element, DType::f32, bytes, std::as_writable_bytes(out));
    return;
  }
  if (!codes.large_table.empty()) {
    std::ranges::transform(bytes, out.begin(),
                           [&](std::byte code) { return codes.large_table[std::to_integer<std::size_t>(code)]; });
    return;
  }
  alignas(64) std::array<std::uint8_t, kCodesAtOnce> unpacked;
  const std::span numbers = std::span(unpacked).first(out.size());
  if (codes.are_small()) {
    unpack_small(codes, bytes, numbers);
    return kernels::look_up(codes.table, numbers, out.data());
  }
  if (codes.bits == 8) return kernels::byte_fields(codes.field, bytes, out.data());
  if (codes.in_word != 0)
    kernels::unpack_words(codes.bits, codes.in_word, bytes, numbers);
  else
    kernels::unpack_codes(codes.bits, bytes, numbers);
  kernels::byte_fields(codes.field, std::as_bytes(numbers), out.data());
}

}  // namespace ballast
