#include "tensor/packed/row_formula.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/cast.hpp"
#include "kernels/packed/runs.hpp"
#include "kernels/packed/tables.hpp"

namespace ballast {
namespace {

using kernels::kTableElements;
using kernels::RunStep;

// Elements of a row that follow each other.
struct RowRun {
  std::uint64_t row, column, count;
};

void round_on_the_way(DType dtype, std::span<float> values) {
  alignas(64) std::array<std::byte, kCodesAtOnce * sizeof(float)> buffer;
  const std::span rounded = std::span(buffer).first(values.size() * info(dtype).block_bytes);
  kernels::cast(DType::f32, dtype, std::as_bytes(values), rounded);
  kernels::cast(dtype, DType::f32, rounded, std::as_writable_bytes(values));
}

// The steps of the formula but for the last rounding; step(what, numbers) is one of them.
template <class Step>
void take_steps(const PackedRows& rows, const RowNumbers& numbers, std::span<float> values, const Step& step) {
  if (rows.zero) {
    step(RunStep::subtract, *numbers.zero);
    if (rows.rounded) round_on_the_way(*rows.rounded, values);
  }
  step(RunStep::multiply, numbers.scale);
  if (rows.bias) {
    if (rows.rounded) round_on_the_way(*rows.rounded, values);
    step(rows.subtracts_bias ? RunStep::subtract : RunStep::add, *numbers.bias);
  }
  if (rows.factor) kernels::step_runs(RunStep::multiply, values, &*rows.factor, values.size() + 1);
}

// At most kCodesAtOnce elements.
Overflows unpack_each(const PackedRows& rows, const PackedCodes& codes, const RowNumbers& numbers, const RowRun& run,
                      std::span<const std::byte> in, std::span<std::byte> out) {
  alignas(64) std::array<float, kCodesAtOnce> buffer;
  const std::span values = std::span(buffer).first(static_cast<std::size_t>(run.count));
  decode_codes(codes, in, values);
  take_steps(rows, numbers, values, [&](RunStep what, const LoadedNumbers& loaded) {
    const std::uint64_t each = loaded.columns_each();
    kernels::step_runs(what, values, loaded.at(run.row, run.column), each, run.column % each);
  });
  return kernels::cast(DType::f32, rows.dtype, std::as_bytes(values),
                       out.first(values.size() * info(rows.dtype).block_bytes));
}

// Codes of a few bits stand for a few elements: in a group that shares all numbers, the same code always becomes the
// same element. So the formula is computed for each code, and not for each element. F8_E4M3 has 16 magnitudes that the
// others are powers of two times of, and so are their elements as long as none is subnormal or infinite.
class CodeTables {
 public:
  // What tables are made for at once, in pieces of codes: a row of a usual size, so that the next row can use them,
  // too.
  static constexpr std::uint64_t kPieces = 4;

  static bool are_worth_it(const PackedRows& rows, const PackedCodes& codes) {
    if (rows.dtype == DType::bf16 && codes.element == DType::f8_e4m3) return !rows.zero && !rows.bias && !rows.factor;
    return codes.are_small() && (rows.dtype == DType::bf16 || rows.dtype == DType::f16);
  }

  // Whether there are tables. If not, each element has to be computed by itself. The next row often shares its numbers.
  bool make(const PackedRows& rows, const PackedCodes& codes, const RowNumbers& numbers, const RowRun& run) {
    const auto at = [&](const LoadedNumbers* loaded) {
      return loaded != nullptr ? loaded->at(run.row, run.column) : nullptr;
    };
    const Made made{at(&numbers.scale), at(numbers.zero ? &*numbers.zero : nullptr),
                    at(numbers.bias ? &*numbers.bias : nullptr), run.column, run.count};
    if (made != made_) are_usable_ = make_anew(rows, codes, numbers, run);
    made_ = made;
    return are_usable_;
  }

  bool look_up(const PackedCodes& codes, const RowRun& run, std::span<const std::byte> in,
               std::span<std::byte> out) const {
    const std::uint64_t first = run.column % each_;
    if (codes.element)
      return kernels::e4m3_runs(tables_.data(), {each_, first}, in.first(static_cast<std::size_t>(run.count)),
                                out.data());
    alignas(64) std::array<std::uint8_t, kCodesAtOnce> small;
    const std::size_t step = codes.at_once();
    for (std::size_t done = 0; done < run.count; done += step) {
      const std::span some = std::span(small).first(std::min<std::size_t>(run.count - done, step));
      unpack_small(codes, in.subspan(static_cast<std::size_t>(codes.bytes_of(done))), some);
      kernels::look_up_runs(tables_.data(), {each_, first + done}, some, out.data() + 2 * done);
    }
    return true;
  }

 private:
  struct Made {
    const float *scale, *zero, *bias;
    std::uint64_t column, count;
    bool operator==(const Made&) const = default;
  };

  static constexpr std::uint64_t kFewestColumns = 32;  // for fewer, a table costs as much as the elements
  static constexpr std::size_t kMostTables = 256;

  // 2^-9 times 0 to 7, and half of 8 to 15 times that.
  static constexpr kernels::CodeTable kE4m3Magnitudes = [] {
    kernels::CodeTable table{};
    for (unsigned i = 0; i < 16; ++i) table[i] = static_cast<float>(i) * (i < 8 ? 0x1p-9F : 0x1p-10F);
    return table;
  }();

  // Whether the smallest magnitude is a normal number, and the largest, 448, a finite one.
  static bool are_normal(std::span<const float> values) {
    for (std::size_t i = 1; i < values.size(); i += kTableElements)
      if (!(std::fabs(values[i]) >= 0x1p-126F && std::fabs(values[i]) <= 0x1p108F)) return false;
    return true;
  }

  bool make_anew(const PackedRows& rows, const PackedCodes& codes, const RowNumbers& numbers, const RowRun& run) {
    const std::uint64_t last = run.column + run.count - 1;
    each_ = numbers.scale.columns_each();
    if (numbers.zero) each_ = std::min(each_, numbers.zero->columns_each());
    if (numbers.bias) each_ = std::min(each_, numbers.bias->columns_each());
    const std::uint64_t count = last / each_ - run.column / each_ + 1;
    if (each_ < kFewestColumns || count > kMostTables) return false;
    const std::span values = std::span(values_).first(static_cast<std::size_t>(count) * kTableElements);
    const bool is_f8 = codes.element.has_value();
    for (std::size_t i = 0; i < values.size(); i += kTableElements)
      std::ranges::copy(is_f8 ? kE4m3Magnitudes : codes.table, values.begin() + static_cast<std::ptrdiff_t>(i));
    bool are_shared = true;
    take_steps(rows, numbers, values, [&](RunStep what, const LoadedNumbers& loaded) {
      const std::uint64_t each = loaded.columns_each();
      are_shared = are_shared && (each == each_ || run.column / each == last / each);
      kernels::step_runs(what, values, loaded.at(run.row, run.column), each == each_ ? kTableElements : values.size());
    });
    if (!are_shared || (is_f8 && !are_normal(values))) return false;
    const std::span tables = std::as_writable_bytes(std::span(tables_).first(values.size()));
    return kernels::cast(DType::f32, rows.dtype, std::as_bytes(values), tables).count == 0;
  }

  Made made_{};
  bool are_usable_ = false;
  std::uint64_t each_ = 0;  // columns of a table
  alignas(64) std::array<float, kMostTables * kTableElements> values_;
  alignas(64) std::array<std::uint16_t, kMostTables * kTableElements> tables_;
};

}  // namespace

RowNumbers::RowNumbers(const PackedRows& rows, const MatrixPart& part, std::span<const std::uint32_t> groups)
    : scale(rows.scale, part, groups) {
  if (rows.zero) zero.emplace(*rows.zero, part, groups);
  if (rows.bias) bias.emplace(*rows.bias, part, groups);
}

Overflows unpack_part(const PackedRows& rows, std::span<const PackedCodes> codes, const RowNumbers& numbers,
                      const MatrixPart& part, std::span<const std::byte> in, std::span<std::byte> out) {
  const std::size_t width = info(rows.dtype).block_bytes, at_once = codes.front().at_once();
  const bool by_tables = CodeTables::are_worth_it(rows, codes.front());
  const std::uint64_t step = by_tables ? at_once * CodeTables::kPieces : at_once;
  CodeTables tables;
  Overflows overflows;
  for (std::uint64_t row = 0; row < part.rows; ++row) {
    const PackedCodes& own = codes[row % codes.size()];
    const std::span codes_of_row = in.subspan(row / codes.size() * rows.row_bytes);
    const auto made_at = [&](std::uint64_t column) { return (row * part.columns + column) * width; };
    for (std::uint64_t done = 0; done < part.columns; done += step) {
      RowRun run{part.first_row + row, part.first_column + done, std::min(part.columns - done, step)};
      const std::span from = codes_of_row.subspan(own.bytes_of(done));
      const std::span to = out.subspan(made_at(done), run.count * width);
      if (by_tables && tables.make(rows, own, numbers, run) && tables.look_up(own, run, from, to)) continue;
      for (std::uint64_t some = 0; some < run.count; some += at_once)
        overflows.add(unpack_each(rows, own, numbers,
                                  {run.row, run.column + some, std::min<std::uint64_t>(run.count - some, at_once)},
                                  from.subspan(own.bytes_of(some)), to.subspan(some * width)));
    }
  }
  return overflows;
}

}  // namespace ballast
