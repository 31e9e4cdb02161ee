#include "kernels/compare.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "kernels/blocks.hpp"
#include "kernels/lanes.hpp"

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
void count_different(Difference& d, std::size_t count, Same same) {
  std::uint64_t different = 0;
  for (std::size_t i = 0; i < count; ++i) different += same(i) ? 0U : 1U;
  for (std::size_t i = 0; !d.first_different && i < count; ++i) {
    if (!same(i)) d.first_different = d.count + i;
  }
  d.different += different;
  d.count += count;
}

template <std::size_t kSize>
void compare_bytes(Difference& d, const std::byte* a, const std::byte* b, std::size_t count) {
  count_different(d, count, [&](std::size_t i) { return std::memcmp(a + i * kSize, b + i * kSize, kSize) == 0; });
}

void compare_bits(Difference& d, std::span<const std::byte> a, std::span<const std::byte> b, std::size_t bits) {
  const std::size_t count = a.size() * 8 / bits, size = bits / 8;
  switch (bits) {
    case 8: return compare_bytes<1>(d, a.data(), b.data(), count);
    case 16: return compare_bytes<2>(d, a.data(), b.data(), count);
    case 32: return compare_bytes<4>(d, a.data(), b.data(), count);
    case 64: return compare_bytes<8>(d, a.data(), b.data(), count);
    default: break;
  }
  if (bits < 8) {
    return count_different(d, count,
                           [&](std::size_t i) { return bits_at(a, i * bits, bits) == bits_at(b, i * bits, bits); });
  }
  count_different(d, count, [&](std::size_t i) { return std::memcmp(&a[i * size], &b[i * size], size) == 0; });
}

// The arrays are filled with zeros up to whole lanes.
void compare_numbers(Difference& d, const double* a, const double* b, std::size_t count) {
  Pair max_abs[kPairs] = {}, max_rel[kPairs] = {};
  PairMask nan[kPairs] = {};
  for (std::size_t i = 0; i < count; i += kLanes) {
    for (std::size_t p = 0; p < kPairs; ++p) {
      const Pair x = load_pair(a + i + 2 * p), y = load_pair(b + i + 2 * p);
      nan[p] += (x == x) ^ (y == y);
      const Pair distance = x < y ? y - x : x - y;
      const Pair abs_x = x < 0.0 ? -x : x, abs_y = y < 0.0 ? -y : y;
      const Pair relative = distance / (abs_x > abs_y ? abs_x : abs_y);
      // A NaN is not above anything, so it is not taken: it comes from two zeros, two equal infinities, or NaN itself.
      max_abs[p] = distance > max_abs[p] ? distance : max_abs[p];
      max_rel[p] = relative > max_rel[p] ? relative : max_rel[p];
    }
  }
  d.nan_mismatch += count_of(nan);
  for (std::size_t i = 0; i < kLanes; ++i) {
    d.max_abs = std::max(d.max_abs, max_abs[i / 2][i % 2]);
    d.max_rel = std::max(d.max_rel, max_rel[i / 2][i % 2]);
  }
  if (std::isinf(d.max_abs)) d.max_rel = d.max_abs;
}

// F64 cannot hold every 64-bit integer, so the distance of two integers is taken before it is rounded.
template <class Integer>
void compare_integers(Difference& d, std::span<const std::byte> a, std::span<const std::byte> b) {
  std::uint64_t farthest = 0;
  for (std::size_t at = 0; at < a.size(); at += sizeof(Integer)) {
    Integer x = 0, y = 0;
    std::memcpy(&x, &a[at], sizeof x);
    std::memcpy(&y, &b[at], sizeof y);
    if (x == y) continue;
    const std::uint64_t distance =
        static_cast<std::uint64_t>(std::max(x, y)) - static_cast<std::uint64_t>(std::min(x, y));
    const double larger = std::max(std::abs(static_cast<double>(x)), std::abs(static_cast<double>(y)));
    farthest = std::max(farthest, distance);
    d.max_rel = std::max(d.max_rel, static_cast<double>(distance) / larger);
  }
  d.max_abs = std::max(d.max_abs, static_cast<double>(farthest));
}

// How far two numbers are apart.
struct Apart {
  double distance, larger;  // larger: the larger of both magnitudes
  bool is_nan_on_one_side;
};

Apart apart(double x, double y) {
  return {x == y ? 0 : std::fabs(x - y), std::max(std::fabs(x), std::fabs(y)), std::isnan(x) != std::isnan(y)};
}

template <class Integer>
Apart apart(Integer x, Integer y) {
  const std::uint64_t distance =
      static_cast<std::uint64_t>(std::max(x, y)) - static_cast<std::uint64_t>(std::min(x, y));
  return {static_cast<double>(distance), apart(static_cast<double>(x), static_cast<double>(y)).larger, false};
}

// Adds elements of `parts` numbers each; at(i) says how far apart the two numbers i are.
template <class At>
void count_beyond(Difference& d, double tolerance, std::size_t count, std::size_t parts, At at) {
  for (std::size_t i = 0; i < count; ++i, ++d.count) {
    bool is_different = false;
    for (std::size_t part = 0; part < parts; ++part) {
      const Apart found = at(i * parts + part);
      if (!found.is_nan_on_one_side && !(found.distance > tolerance)) continue;
      is_different = true;
      d.nan_mismatch += found.is_nan_on_one_side ? 1U : 0U;
      if (found.is_nan_on_one_side) continue;
      d.max_abs = std::max(d.max_abs, found.distance);
      d.max_rel = std::max(d.max_rel, std::isinf(found.distance) ? found.distance : found.distance / found.larger);
    }
    if (!is_different) continue;
    if (!d.first_different) d.first_different = d.count;
    ++d.different;
  }
}

template <class Number>
void compare_beyond(Difference& d, double tolerance, std::size_t parts, std::span<const std::byte> a,
                    std::span<const std::byte> b) {
  const auto value = [](std::span<const std::byte> bytes, std::size_t i) {
    Number number;
    std::memcpy(&number, &bytes[i * sizeof number], sizeof number);
    return number;
  };
  count_beyond(d, tolerance, a.size() / sizeof(Number) / parts, parts,
               [&](std::size_t i) { return apart(value(a, i), value(b, i)); });
}

// F64 cannot hold every 64-bit integer.
void compare_beyond(Difference& d, double tolerance, DType number, std::size_t parts, std::span<const std::byte> a,
                    std::span<const std::byte> b) {
  if (number == DType::i64) return compare_beyond<std::int64_t>(d, tolerance, parts, a, b);
  if (number == DType::u64) return compare_beyond<std::uint64_t>(d, tolerance, parts, a, b);
  const std::size_t count = a.size() / info(number).block_bytes * info(number).block_elements;
  alignas(64) double left[kValuesPerBlock], right[kValuesPerBlock];
  const auto wide_a = std::as_writable_bytes(std::span(left, count));
  const auto wide_b = std::as_writable_bytes(std::span(right, count));
  cast(number, DType::f64, a, wide_a);
  cast(number, DType::f64, b, wide_b);
  compare_beyond<double>(d, tolerance, parts, wide_a, wide_b);
}

void compare_values(Difference& d, DType number, std::span<const std::byte> a, std::span<const std::byte> b) {
  if (number == DType::i64) return compare_integers<std::int64_t>(d, a, b);
  if (number == DType::u64) return compare_integers<std::uint64_t>(d, a, b);
  const std::size_t count = a.size() / info(number).block_bytes * info(number).block_elements;
  alignas(64) double left[kValuesPerBlock], right[kValuesPerBlock];
  const std::size_t padded = (count + kLanes - 1) / kLanes * kLanes;
  std::fill(left + count, left + padded, 0.0);
  std::fill(right + count, right + padded, 0.0);
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

void accumulate(Difference& d, DType dtype, std::span<const std::byte> a, std::span<const std::byte> b,
                double tolerance) noexcept {
  const Elements elements = elements_of(dtype);
  // A block holds kValuesPerBlock values; if the type has no values, a block has about the same number of bytes.
  const DTypeInfo& unit = info(elements.number.value_or(dtype));
  const std::size_t step = (elements.number ? kValuesPerBlock / unit.block_elements : 64) * unit.block_bytes;
  for (std::size_t at = 0; at < a.size(); at += step) {
    const std::size_t size = std::min(step, a.size() - at);
    const auto left = a.subspan(at, size), right = b.subspan(at, size);
    if (std::memcmp(left.data(), right.data(), size) == 0) {
      d.count += size * 8 / elements.bits;
      continue;
    }
    if (tolerance > 0 && elements.number) {
      const std::size_t parts = elements.bits * unit.block_elements / (std::size_t{unit.block_bytes} * 8);
      compare_beyond(d, tolerance, *elements.number, parts, left, right);
      continue;
    }
    compare_bits(d, left, right, elements.bits);
    if (elements.number) compare_values(d, *elements.number, left, right);
  }
}

}  // namespace ballast::kernels
