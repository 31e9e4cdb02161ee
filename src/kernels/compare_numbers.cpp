#include "kernels/compare_numbers.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/bf16_distance.hpp"
#include "kernels/blocks.hpp"
#include "kernels/cast.hpp"

namespace ballast::kernels {
namespace {

std::size_t count_of(DType number, std::span<const std::byte> bytes) {
  return bytes.size() / info(number).block_bytes * info(number).block_elements;
}

// Whether F32 holds every value of the type.
bool fits_floats(DType number) {
  const DTypeInfo& type = info(number);
  const std::size_t bits = type.block_bytes * std::size_t{8} / type.block_elements;
  return bits <= 16 || number == DType::f32;
}

// The values of a block as Number, with zeros up to whole lanes behind them; the bytes themselves if they are that.
template <class Number, DType kDtype>
class BlockValues {
 public:
  BlockValues(DType number, std::span<const std::byte> bytes) : count_(count_of(number, bytes)) {
    if (number == kDtype && count_ == padded()) {
      values_ = reinterpret_cast<const Number*>(bytes.data());
      return;
    }
    cast(number, kDtype, bytes, std::as_writable_bytes(std::span(buffer_, count_)));
    std::fill(buffer_ + count_, buffer_ + padded(), Number{});
  }
  BlockValues(const BlockValues&) = delete;
  BlockValues& operator=(const BlockValues&) = delete;

  const Number* data() const { return values_; }  // may be unaligned: for kernels
  double at(std::size_t i) const {
    Number value;
    std::memcpy(&value, reinterpret_cast<const std::byte*>(values_) + i * sizeof value, sizeof value);
    return static_cast<double>(value);
  }
  std::size_t count() const { return count_; }
  std::size_t padded() const { return (count_ + kDistanceLanes - 1) / kDistanceLanes * kDistanceLanes; }

 private:
  std::size_t count_;
  alignas(64) Number buffer_[kValuesPerBlock];
  const Number* values_ = buffer_;
};
using BlockHalves = BlockValues<bfloat16, DType::bf16>;
using BlockFloats = BlockValues<float, DType::f32>;
using BlockDoubles = BlockValues<double, DType::f64>;

// How far two numbers are apart.
struct Apart {
  double distance, larger;  // larger: the larger of both magnitudes
  bool is_nan_on_one_side, is_close;
};

Apart apart(double x, double y, const Closeness& close) {
  const double distance = x == y || (std::isnan(x) && std::isnan(y)) ? 0 : std::fabs(x - y);
  const bool is_within = distance <= close.atol + close.rtol * std::fabs(y) && std::isfinite(y);
  return {distance, std::max(std::fabs(x), std::fabs(y)), std::isnan(x) != std::isnan(y), distance == 0 || is_within};
}

// F64 cannot hold every 64-bit integer, so the distance of two integers is taken before it is rounded.
template <class Integer>
Apart apart(Integer x, Integer y, const Closeness& close) {
  const std::uint64_t steps = static_cast<std::uint64_t>(std::max(x, y)) - static_cast<std::uint64_t>(std::min(x, y));
  const auto distance = static_cast<double>(steps);
  const double magnitude = std::fabs(static_cast<double>(y));
  return {distance, std::max(std::fabs(static_cast<double>(x)), magnitude), false,
          distance <= close.atol + close.rtol * magnitude};
}

void take_extremes(Difference& d, std::uint64_t element, const Apart& found) {
  if (found.distance > d.max_abs) {
    d.max_abs = found.distance;
    d.max_at = element;
  }
  if (found.distance > 0)
    d.max_rel = std::max(d.max_rel, std::isinf(found.distance) ? found.distance : found.distance / found.larger);
}

// at(i) says how far apart the two numbers i are. Numbers that are close have no extremes.
template <class At>
void compare_one_by_one(Difference& d, std::size_t count, std::size_t parts, bool is_exact, At at) {
  for (std::size_t i = 0; i < count; i += parts) {
    bool is_different = false;
    const std::uint64_t element = d.count + i / parts;
    for (std::size_t part = 0; part < parts; ++part) {
      const Apart found = at(i + part);
      if (found.is_close) continue;
      is_different = true;
      if (found.is_nan_on_one_side) {
        ++d.nan_mismatch;
      } else {
        take_extremes(d, element, found);
      }
    }
    if (is_exact || !is_different) continue;  // exact comparisons count bits
    if (!d.first_different) d.first_different = element;
    ++d.different;
  }
}

template <class Values>
void add_finite(Difference& d, const Values& a, const Values& b) {
  for (std::size_t i = 0; i < a.count(); ++i) {
    const double x = a.at(i), y = b.at(i);
    if (!std::isfinite(x) || !std::isfinite(y)) continue;
    d.sums.add({x * x, y * y, x * y, (x - y) * (x - y)});
    ++d.finite_count;
  }
}

// The extremes of a block as vector code found them: only where they are is left to be seen.
template <class Values>
void take_block(Difference& d, const BlockDistance& block, const Values& a, const Values& b, const Closeness& close) {
  const auto first = [&](double at_least) {
    std::size_t i = 0;
    for (; i < a.count(); ++i) {
      const Apart found = apart(a.at(i), b.at(i), close);
      if (!found.is_close && found.distance >= at_least) break;
    }
    return d.count + i;
  };
  d.max_rel = block.max_rel;
  if (block.max_abs > d.max_abs) {
    d.max_at = first(block.max_abs);
    d.max_abs = block.max_abs;
  }
  if (block.beyond != 0 && !d.first_different) d.first_different = first(0);
  d.different += block.beyond;
}

// Whether a whole block of BF16 is done: it changes none of the extremes but max_rel, as nearly all blocks.
bool compare_quickly(Difference& d, const BlockHalves& a, const BlockHalves& b) {
  if (a.count() != kBf16DistanceBlock) return false;
  BlockDistance block;
  block.max_abs = d.max_abs;
  block.max_rel = d.max_rel;
  if (!measure_bf16(block, a.data(), b.data())) return false;
  d.max_rel = block.max_rel;
  d.sums.add(block.sums);
  d.finite_count += a.count();
  return true;
}

template <class Values>
void compare_values(Difference& d, const Values& a, const Values& b, std::size_t parts, const Closeness& close) {
  BlockDistance block;
  block.max_rel = d.max_rel;
  measure(block, a.data(), b.data(), a.padded(), close);
  const bool is_finite = block.sums.is_finite();
  if (is_finite) {
    d.sums.add(block.sums);
    d.finite_count += a.count();
  } else {
    add_finite(d, a, b);
  }
  if (is_finite && parts == 1) return take_block(d, block, a, b, close);
  compare_one_by_one(d, a.count(), parts, close.is_exact(),
                     [&](std::size_t i) { return apart(a.at(i), b.at(i), close); });
}

template <class Integer>
void compare_integers(Difference& d, std::span<const std::byte> a, std::span<const std::byte> b,
                      const Closeness& close) {
  const auto value = [](std::span<const std::byte> bytes, std::size_t i) {
    Integer number;
    std::memcpy(&number, &bytes[i * sizeof number], sizeof number);
    return number;
  };
  compare_one_by_one(d, a.size() / sizeof(Integer), 1, close.is_exact(),
                     [&](std::size_t i) { return apart(value(a, i), value(b, i), close); });
}

}  // namespace

void compare_numbers(Difference& d, const NumberType& type, std::span<const std::byte> a, std::span<const std::byte> b,
                     const Closeness& close) noexcept {
  if (type.number == DType::bf16) {
    const BlockHalves left(type.number, a), right(type.number, b);
    if (type.parts == 1 && close.is_exact() && compare_quickly(d, left, right)) return;
    return compare_values(d, left, right, type.parts, close);
  }
  if (fits_floats(type.number))
    return compare_values(d, BlockFloats(type.number, a), BlockFloats(type.number, b), type.parts, close);
  const BlockDoubles left(type.number, a), right(type.number, b);
  if (type.number != DType::i64 && type.number != DType::u64) return compare_values(d, left, right, type.parts, close);
  BlockDistance block;
  measure(block, left.data(), right.data(), left.padded(), {});
  d.sums.add(block.sums);
  d.finite_count += left.count();
  if (type.number == DType::i64) return compare_integers<std::int64_t>(d, a, b, close);
  compare_integers<std::uint64_t>(d, a, b, close);
}

void add_equal_numbers(Difference& d, DType number, std::span<const std::byte> bytes) noexcept {
  const auto add_squares = [&d](double squares, std::size_t count) {
    d.sums.add({squares, squares, squares, 0});
    d.finite_count += count;
  };
  const auto add = [&](const auto& values) {
    const double squares = sum_of_squares(values.data(), values.padded());
    if (!std::isfinite(squares)) return add_finite(d, values, values);
    add_squares(squares, values.count());
  };
  if (number == DType::bf16) {
    const BlockHalves values(number, bytes);
    double squares = 0;
    const bool is_whole = values.count() == kBf16DistanceBlock;
    if (is_whole && square_bf16(squares, values.data())) return add_squares(squares, values.count());
    return add(values);
  }
  if (fits_floats(number)) return add(BlockFloats(number, bytes));
  add(BlockDoubles(number, bytes));
}

}  // namespace ballast::kernels
