#include "kernels/compare.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

#include "kernels/blocks.hpp"
#include "kernels/compare_numbers.hpp"

namespace ballast::kernels {
namespace {

// How many bits an element has, and the number type as which its value is compared.
struct Elements {
  std::size_t bits;
  std::optional<DType> number;
};

// A complex number is two numbers; a quantized number is compared without its scale.
DType number_of(DType dtype) {
  switch (dtype) {
    case DType::c32: return DType::f16;
    case DType::bc32: return DType::bf16;
    case DType::c64: return DType::f32;
    case DType::c128: return DType::f64;
    case DType::qi8: return DType::i8;
    case DType::qu8: return DType::u8;
    case DType::qi32: return DType::i32;
    default: return dtype;
  }
}

Elements elements_of(DType dtype) {
  const DTypeInfo& type = info(dtype);
  const std::size_t block_bits = type.block_bytes * std::size_t{8};
  if (type.kind == DTypeKind::ggml) return {block_bits, std::nullopt};
  const DType number = number_of(dtype);
  return {block_bits / type.block_elements, can_cast(number, DType::f64) ? std::optional(number) : std::nullopt};
}

// Returns bits [at, at + count) of elements that are packed from the lowest bit up; count is at most 8.
unsigned bits_at(std::span<const std::byte> bytes, std::size_t at, std::size_t count) {
  unsigned word = std::to_integer<unsigned>(bytes[at / 8]);
  if (at / 8 + 1 < bytes.size()) word |= std::to_integer<unsigned>(bytes[at / 8 + 1]) << 8;
  return (word >> at % 8) & ((1U << count) - 1);
}

// same(i) says whether element i has the same bits on both sides.
template <class Same>
void take_first(Difference& d, std::size_t count, Same same) {
  for (std::size_t i = 0; !d.first_different && i < count; ++i) {
    if (!same(i)) d.first_different = d.count + i;
  }
}

template <class Same>
void count_different(Difference& d, std::size_t count, Same same) {
  for (std::size_t i = 0; i < count; ++i) d.different += same(i) ? 0U : 1U;
  take_first(d, count, same);
}

void compare_bits(Difference& d, std::span<const std::byte> a, std::span<const std::byte> b, std::size_t bits) {
  const std::size_t count = a.size() * 8 / bits, size = bits / 8;
  if (bits < 8) {
    return count_different(d, count,
                           [&](std::size_t i) { return bits_at(a, i * bits, bits) == bits_at(b, i * bits, bits); });
  }
  const auto same = [&](std::size_t i) { return std::memcmp(&a[i * size], &b[i * size], size) == 0; };
  if (bits % 8 != 0 || size > 8 || !std::has_single_bit(size)) return count_different(d, count, same);
  d.different += count_unequal(a.data(), b.data(), count, size);
  take_first(d, count, same);
}

}  // namespace

void Difference::merge(const Difference& next) noexcept {
  if (!first_different && next.first_different) first_different = count + *next.first_different;
  if (next.max_at && next.max_abs > max_abs) max_at = count + *next.max_at;
  count += next.count;
  different += next.different;
  nan_mismatch += next.nan_mismatch;
  max_abs = std::max(max_abs, next.max_abs);
  max_rel = std::max(max_rel, next.max_rel);
  finite_count += next.finite_count;
  sums.add(next.sums);
}

bool has_numbers(DType dtype) noexcept { return elements_of(dtype).number.has_value(); }

void accumulate(Difference& d, DType dtype, std::span<const std::byte> a, std::span<const std::byte> b,
                const Closeness& close) noexcept {
  const Elements elements = elements_of(dtype);
  // A block holds kValuesPerBlock values; if the type has no values, a block has about the same number of bytes.
  const DTypeInfo& unit = info(elements.number.value_or(dtype));
  const std::size_t step = (elements.number ? kValuesPerBlock / unit.block_elements : 64) * unit.block_bytes;
  const std::size_t parts = elements.bits * unit.block_elements / (std::size_t{unit.block_bytes} * 8);
  for (std::size_t at = 0; at < a.size(); at += step) {
    const std::size_t size = std::min(step, a.size() - at);
    const auto left = a.subspan(at, size), right = b.subspan(at, size);
    const bool is_same = std::memcmp(left.data(), right.data(), size) == 0;
    if (!is_same && (!elements.number || close.is_exact())) compare_bits(d, left, right, elements.bits);
    if (elements.number && is_same) add_equal_numbers(d, *elements.number, left);
    if (elements.number && !is_same) compare_numbers(d, {*elements.number, parts}, left, right, close);
    d.count += size * 8 / elements.bits;
  }
}

}  // namespace ballast::kernels
