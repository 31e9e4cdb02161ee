// Matrices that are kept as codes: the bits of the formula step by step, whatever way the codes are decoded, and any
// range of them.
#include "tensor/packed/packed_rows.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include <ballast/overflows.hpp>

#include "kernels/cast.hpp"
#include "support/fake_storages.hpp"
#include "tensor/packed/transposed_storage.hpp"

namespace ballast {
namespace {

using Bytes = std::vector<std::byte>;
constexpr std::uint64_t kRows = 3, kColumns = 2240;  // more than are decoded at once

Bytes read(const Tensor& tensor, std::uint64_t first, std::uint64_t size) {
  Bytes bytes(size);
  tensor.read(first, bytes);
  return bytes;
}

Bytes read(const Tensor& tensor) { return read(tensor, 0, tensor.nbytes()); }

float rounded(DType dtype, float value) {
  Bytes bytes(info(dtype).block_bytes);
  float back;
  kernels::cast(DType::f32, dtype, std::as_bytes(std::span(&value, 1)), bytes);
  kernels::cast(dtype, DType::f32, bytes, std::as_writable_bytes(std::span(&back, 1)));
  return back;
}

// Scales that are zero, infinite, NaN, or so small or large that elements are.
std::vector<float> awkward_numbers(std::size_t count) {
  constexpr float kSpecial[] = {0,
                                -0.0F,
                                std::numeric_limits<float>::infinity(),
                                std::numeric_limits<float>::quiet_NaN(),
                                1e-45F,
                                1e-40F,
                                0x1p-117F,
                                0x1.fp-118F,
                                3e38F,
                                0x1p118F,
                                0x1.8p118F,
                                1e-3F,
                                -0.7F,
                                250,
                                6e-8F,
                                -1e-5F};
  std::mt19937 random(static_cast<unsigned>(count));
  std::vector<float> numbers(count);
  for (float& number : numbers)
    number = random() % 2 != 0 ? kSpecial[random() % std::size(kSpecial)]
                               : (static_cast<float>(random() % 2000) - 1000) / 777;
  return numbers;
}

GroupNumbers numbers_of(std::uint64_t each, unsigned seed) {
  const std::uint64_t in_line = (kColumns + each - 1) / each;
  const auto numbers = awkward_numbers(kRows * in_line + seed);
  return {.values = Tensor::from_values(DType::f32, {kRows, in_line}, std::span(numbers).subspan(seed)),
          .in_line = in_line,
          .columns_each = each};
}

float number_at(const GroupNumbers& numbers, std::uint64_t row, std::uint64_t column) {
  return numbers.values.values<float>()[row * numbers.in_line + column / numbers.columns_each];
}

// What each code stands for, one by one.
std::vector<float> numbers_of_codes(const PackedRows& rows) {
  std::vector<float> values;
  const Bytes bytes = read(rows.packed);
  for (std::uint64_t row = 0; row < kRows; ++row) {
    for (std::uint64_t i = 0; i < kColumns; ++i) {
      const std::byte* codes = bytes.data() + row * rows.row_bytes;
      float value = 0;
      if (rows.codes.element) {
        kernels::cast(*rows.codes.element, DType::f32, std::span(codes + i, 1),
                      std::as_writable_bytes(std::span(&value, 1)));
      } else {
        unsigned code = 0;
        for (unsigned bit = 0; bit < rows.codes.bits; ++bit) {
          const std::uint64_t at = i * rows.codes.bits + bit;
          code |= (std::to_integer<unsigned>(codes[at / 8]) >> (at % 8) & 1) << bit;
        }
        value = rows.codes.table[code];
      }
      values.push_back(value);
    }
  }
  return values;
}

Bytes by_the_formula(const PackedRows& rows) {
  std::vector<float> values = numbers_of_codes(rows);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint64_t row = i / kColumns, column = i % kColumns;
    volatile float value = values[i];  // so that no two steps become one
    if (rows.zero) value = value - number_at(*rows.zero, row, column);
    if (rows.zero && rows.rounded) value = rounded(*rows.rounded, value);
    value = value * number_at(rows.scale, row, column);
    if (rows.bias && rows.rounded) value = rounded(*rows.rounded, value);
    if (rows.bias) value = value + number_at(*rows.bias, row, column);
    values[i] = value;
  }
  Bytes bytes(values.size() * info(rows.dtype).block_bytes);
  kernels::cast(DType::f32, rows.dtype, std::as_bytes(std::span(values)), bytes);
  return bytes;
}

// A NaN may have any bits.
void expect_same(DType dtype, const Bytes& ours, const Bytes& expected, const std::string& what) {
  const auto numbers = [&](const Bytes& bytes) {
    std::vector<float> values(bytes.size() / info(dtype).block_bytes);
    kernels::cast(dtype, DType::f32, bytes, std::as_writable_bytes(std::span(values)));
    return values;
  };
  const auto a = numbers(ours), b = numbers(expected);
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    ASSERT_EQ(a[i], b[i]) << what << ", element " << i;
    ASSERT_EQ(std::signbit(a[i]), std::signbit(b[i])) << what << ", element " << i;
  }
}

PackedRows rows_of(const PackedCodes& codes, std::uint64_t each, DType dtype) {
  PackedRows rows{.row_bytes = codes.bytes_of(kColumns), .columns = kColumns, .codes = codes};
  const Bytes bytes = test::some_bytes(kRows * rows.row_bytes, codes.bits);
  rows.packed = Tensor::from_bytes(DType::u8, {bytes.size()}, bytes);
  rows.scale = numbers_of(each, 0);
  rows.dtype = dtype;
  return rows;
}

constexpr DType kDTypes[] = {DType::bf16, DType::f16, DType::f32};
constexpr std::uint64_t kGroups[] = {1, 16, 32, 70, 128, kColumns, 4000};

TEST(PackedRows, OfFewBitsHaveTheBitsOfTheFormula) {
  for (const DType dtype : kDTypes) {
    for (const std::uint64_t each : kGroups) {
      for (const unsigned bits : {1u, 2u, 3u, 4u}) {
        PackedRows rows = rows_of(integer_codes(bits, 1), each, dtype);
        const std::string what = std::to_string(bits) + " bits in groups of " + std::to_string(each);
        expect_same(dtype, read(unpacked_rows(rows)), by_the_formula(rows), what);
        rows.zero = numbers_of(each, 1);
        expect_same(dtype, read(unpacked_rows(rows)), by_the_formula(rows), what + " with zero points");
        rows.rounded = dtype;
        rows.bias = numbers_of(each == 32 ? 64 : each, 2);
        expect_same(dtype, read(unpacked_rows(rows)), by_the_formula(rows), what + " with biases");
      }
    }
  }
}

TEST(PackedRows, OfF8HaveTheBitsOfTheFormula) {
  for (const DType dtype : kDTypes) {
    for (const std::uint64_t each : kGroups) {
      PackedRows rows = rows_of(element_codes(DType::f8_e4m3), each, dtype);
      const std::string what = "groups of " + std::to_string(each);
      expect_same(dtype, read(unpacked_rows(rows)), by_the_formula(rows), what + ", some codes NaN");
      Bytes bytes = read(rows.packed);
      for (std::byte& code : bytes)
        if ((code & std::byte{0x7F}) == std::byte{0x7F}) code = std::byte{0x80};
      rows.packed = Tensor::from_bytes(DType::u8, {bytes.size()}, bytes);
      expect_same(dtype, read(unpacked_rows(rows)), by_the_formula(rows), what);
    }
  }
}

TEST(PackedRows, CountWhatIsTooLargeAlsoIfItIsLookedUp) {
  PackedRows rows = rows_of(integer_codes(4, 0), 64, DType::f16);
  const std::vector<float> scales(kRows * 35, 8000);  // codes from 9 on
  rows.scale.values = Tensor::from_values(DType::f32, {kRows, 35}, std::span(scales));
  std::uint64_t count = 0;
  for (const float value : numbers_of_codes(rows)) count += value >= 9 ? 1 : 0;
  Bytes out(kRows * kColumns * 2);
  const Tensor weight = unpacked_rows(rows);
  const OverflowCounter counter;
  weight.read(0, out);
  EXPECT_EQ(counter.total().count, count);
}

TEST(PackedRows, AreReadInAnyRange) {
  std::mt19937 random(4);
  for (const PackedCodes& codes : {integer_codes(4, 8), integer_codes(3, 0), element_codes(DType::f8_e4m3)}) {
    PackedRows rows = rows_of(codes, 64, DType::bf16);
    rows.scale.rows_each = 2;
    const Tensor weight = unpacked_rows(rows);
    const Bytes all = read(weight);
    for (int i = 0; i < 200; ++i) {
      const std::uint64_t first = random() % all.size();
      const std::uint64_t size = random() % std::min<std::uint64_t>(all.size() - first, 6000);
      const auto from = all.begin() + static_cast<std::ptrdiff_t>(first);
      ASSERT_EQ(read(weight, first, size), Bytes(from, from + static_cast<std::ptrdiff_t>(size))) << first;
    }
  }
}

// Counts the bytes that are read.
class CountedStorage final : public Storage {
 public:
  explicit CountedStorage(Bytes bytes) : bytes_(std::move(bytes)) {}
  std::uint64_t size_bytes() const override { return bytes_.size(); }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), out.size(), out.begin());
    read_ += out.size();
  }
  std::uint64_t read_bytes() const { return read_; }

 private:
  Bytes bytes_;
  mutable std::uint64_t read_ = 0;
};

TEST(PackedRows, ReadNoMoreOfARowThanASliceNeeds) {
  constexpr std::uint64_t kLong = 8192;
  const auto codes = std::make_shared<CountedStorage>(Bytes(4 * kLong, std::byte{0x38}));
  PackedRows rows{.packed = Tensor(DType::u8, {4 * kLong}, codes),
                  .row_bytes = kLong,
                  .columns = kLong,
                  .codes = element_codes(DType::f8_e4m3),
                  .scale = one_number(2)};
  const Tensor weight = unpacked_rows(std::move(rows));
  const Tensor slice = weight.slice({SliceIndex::range(1, 3), SliceIndex::range(5000, 5004)});
  EXPECT_EQ(slice.to(DType::f32).values<float>(), std::vector<float>(8, 2));
  EXPECT_LE(codes->read_bytes(), 2048u);
}

TEST(PackedRows, ThatShareBytesLieOneBelowTheOther) {
  const Bytes bytes = test::some_bytes(5 * 300, 1);
  std::vector<float> scales(3 * 300);
  for (std::size_t i = 0; i < scales.size(); ++i) scales[i] = static_cast<float>(i);
  PackedRows rows{.packed = Tensor::from_bytes(DType::u8, {bytes.size()}, bytes),
                  .row_bytes = 300,
                  .columns = 300,
                  .rows_in_byte = 2,
                  .codes = bit_field_codes(0, 4, 3),
                  .scale = {.values = Tensor::from_values(DType::f32, {3, 300}, std::span<const float>(scales)),
                            .in_line = 300,
                            .rows_each = 4},
                  .dtype = DType::f32};
  const Tensor weight = unpacked_rows(std::move(rows));
  ASSERT_EQ(weight.shape(), (Shape{10, 300}));
  const auto values = weight.values<float>();
  for (std::size_t row = 0; row < 10; ++row) {
    for (std::size_t i = 0; i < 300; ++i) {
      const unsigned byte = std::to_integer<unsigned>(bytes[row / 2 * 300 + i]);
      const float code = static_cast<float>(row % 2 == 0 ? byte & 15 : byte >> 4) - 3;
      ASSERT_EQ(values[row * 300 + i], code * scales[row / 4 * 300 + i]) << row << ", " << i;
    }
  }
  EXPECT_EQ(read(weight, 7 * 1200 + 8, 2000), [&] {
    const Bytes all = read(weight);
    return Bytes(all.begin() + 7 * 1200 + 8, all.begin() + 7 * 1200 + 2008);
  }());
}

TEST(Transposed, MatricesAreReadInAnyRange) {
  std::mt19937 random(5);
  for (const auto& [rows, columns, matrices] : {std::tuple(300u, 70u, 1u), {33u, 600u, 2u}, {1u, 5u, 3u}}) {
    for (const DType dtype : {DType::u8, DType::f16, DType::i32}) {
      const std::size_t width = info(dtype).block_bytes;
      const Bytes bytes = test::some_bytes(std::size_t{matrices} * rows * columns * width, rows);
      const Tensor turned = transposed(Tensor::from_bytes(dtype, {matrices * rows, columns}, bytes), matrices);
      ASSERT_EQ(turned.shape(), (Shape{matrices * columns, rows}));
      Bytes expected;
      for (std::size_t m = 0; m < matrices; ++m)
        for (std::size_t c = 0; c < columns; ++c)
          for (std::size_t r = 0; r < rows; ++r)
            for (std::size_t k = 0; k < width; ++k)
              expected.push_back(bytes[((m * rows + r) * columns + c) * width + k]);
      ASSERT_EQ(read(turned), expected);
      for (int i = 0; i < 50; ++i) {
        const std::uint64_t first = random() % expected.size(), size = random() % (expected.size() - first);
        const auto from = expected.begin() + static_cast<std::ptrdiff_t>(first);
        ASSERT_EQ(read(turned, first, size), Bytes(from, from + static_cast<std::ptrdiff_t>(size))) << first;
      }
    }
  }
}

}  // namespace
}  // namespace ballast
