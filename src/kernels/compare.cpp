#include "kernels/compare.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "kernels/blocks.hpp"

namespace ballast::kernels {
namespace {

// How many bits an element has, and as which numbers its value is compared.
struct Elements {
  std::size_t bits;
  std::optional<DType> number;
};

// A complex number is two numbers; a quantized one is compared before its scale.
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

// Bits [at, at + count) of elements that are packed from the lowest bit up; count is at most 8.
unsigned bits_at(std::span<const std::byte> bytes, std::size_t at, std::size_t count) {
  unsigned word = std::to_integer<unsigned>(bytes[at / 8]);
  if (at / 8 + 1 < bytes.size()) word |= std::to_integer<unsigned>(bytes[at / 8 + 1]) << 8;
  return (word >> at % 8) & ((1U << count) - 1);
}

bool same_bits(std::span<const std::byte> a, std::span<const std::byte> b, std::size_t i, std::size_t bits) {
  if (bits < 8) return bits_at(a, i * bits, bits) == bits_at(b, i * bits, bits);
  return std::memcmp(a.data() + i * (bits / 8), b.data() + i * (bits / 8), bits / 8) == 0;
}

void compare_bits(Difference& d, std::span<const std::byte> a, std::span<const std::byte> b, std::size_t bits) {
  const std::size_t count = a.size() * 8 / bits;
  for (std::size_t i = 0; i < count; ++i) {
    if (same_bits(a, b, i, bits)) continue;
    if (!d.first_different) d.first_different = d.count + i;
    ++d.different;
  }
  d.count += count;
}

void compare_numbers(Difference& d, const double* a, const double* b, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    if (a[i] == b[i]) continue;
    const bool nan_a = std::isnan(a[i]), nan_b = std::isnan(b[i]);
    if (nan_a || nan_b) {
      d.nan_mismatch += nan_a != nan_b ? 1 : 0;
      continue;
    }
    const double distance = std::fabs(a[i] - b[i]), scale = std::max(std::fabs(a[i]), std::fabs(b[i]));
    d.max_abs = std::max(d.max_abs, distance);
    d.max_rel = std::max(d.max_rel, std::isinf(scale) ? scale : distance / scale);
  }
}

void compare_values(Difference& d, DType number, std::span<const std::byte> a, std::span<const std::byte> b) {
  const std::size_t count = a.size() / info(number).block_bytes * info(number).block_elements;
  alignas(64) double left[kValuesPerBlock], right[kValuesPerBlock];
  cast(number, DType::f64, a, std::as_writable_bytes(std::span(left, count)));
  cast(number, DType::f64, b, std::as_writable_bytes(std::span(right, count)));
  compare_numbers(d, left, right, count);
}

}  // namespace

void Difference::merge(const Difference& next) noexcept {
  if (!first_different && next.first_different) first_different = count + *next.first_different;
  count += next.count;
  different += next.different;
  nan_mismatch += next.nan_mismatch;
  max_abs = std::max(max_abs, next.max_abs);
  max_rel = std::max(max_rel, next.max_rel);
}

void accumulate(Difference& d, DType dtype, std::span<const std::byte> a, std::span<const std::byte> b) noexcept {
  const Elements elements = elements_of(dtype);
  // A block of values where there are values, and of the same order of size where there are none.
  const DTypeInfo& unit = info(elements.number.value_or(dtype));
  const std::size_t step = (elements.number ? kValuesPerBlock / unit.block_elements : 64) * unit.block_bytes;
  for (std::size_t at = 0; at < a.size(); at += step) {
    const std::size_t size = std::min(step, a.size() - at);
    const auto left = a.subspan(at, size), right = b.subspan(at, size);
    if (std::memcmp(left.data(), right.data(), size) == 0) {
      d.count += size * 8 / elements.bits;
      continue;
    }
    compare_bits(d, left, right, elements.bits);
    if (elements.number) compare_values(d, *elements.number, left, right);
  }
}

}  // namespace ballast::kernels
