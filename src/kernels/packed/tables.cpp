#include "kernels/packed/tables.hpp"

#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/packed/tables.cpp"
#include <hwy/foreach_target.h>  // includes this file again for every target
// Included after foreach_target.h, because it depends on the target.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace ballast::kernels {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Looks up `index(code)` for each code; `finish(element, code)` makes the result. Codes are words, in a vector or
// alone.
template <class Index, class Finish>
HWY_INLINE void look_up_run(const std::uint16_t* table, const std::uint8_t* codes, std::size_t count, std::byte* out,
                            const Index& index, const Finish& finish) {
  std::size_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<std::uint16_t> d;
  const hn::Repartition<std::uint8_t, decltype(d)> d8;
  const hn::Rebind<std::uint8_t, decltype(d)> half;
  const hn::FixedTag<std::uint8_t, 16> block;
  // A table of 16 elements of two bytes is two tables of 16 bytes.
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(table);
  const auto first = hn::LoadU(block, bytes), second = hn::LoadU(block, bytes + 16);
  alignas(16) std::uint8_t planes[32];
  hn::Store(hn::ConcatEven(block, second, first), block, planes);
  hn::Store(hn::ConcatOdd(block, second, first), block, planes + 16);
  const auto low = hn::LoadDup128(d8, planes), high = hn::LoadDup128(d8, planes + 16);
  for (; i + hn::Lanes(d) <= count; i += hn::Lanes(d)) {
    const auto code = hn::PromoteTo(d, hn::LoadU(half, codes + i));
    const auto at = index(d, code);
    // Where the index is above 127, the byte becomes zero.
    const auto of_low = hn::BitCast(d8, hn::Or(at, hn::Set(d, 0x8000)));
    const auto of_high = hn::BitCast(d8, hn::Or(hn::ShiftLeft<8>(at), hn::Set(d, 0x80)));
    const auto element = hn::Or(hn::TableLookupBytesOr0(low, of_low), hn::TableLookupBytesOr0(high, of_high));
    hn::StoreU(finish(d, hn::BitCast(d, element), code), d, reinterpret_cast<std::uint16_t*>(out) + i);
  }
#endif
  const hn::CappedTag<std::uint16_t, 1> one;
  for (; i < count; ++i) {
    const auto code = hn::Set(one, codes[i]);
    const auto element = hn::Set(one, table[hn::GetLane(index(one, code))]);
    const std::uint16_t result = hn::GetLane(finish(one, element, code));
    std::memcpy(out + 2 * i, &result, sizeof result);
  }
}

// Calls look(table, codes, count, out) for each run.
template <class Look>
HWY_INLINE void for_each_run(const std::uint16_t* table, TableRuns runs, const std::uint8_t* codes, std::size_t count,
                             std::byte* out, const Look& look) {
  std::uint64_t left = runs.size - runs.first % runs.size;  // of the run that is begun
  table += runs.first / runs.size * kTableElements;
  for (; count != 0; left = runs.size, table += kTableElements) {
    const std::size_t size = left < count ? static_cast<std::size_t>(left) : count;
    look(table, codes, size, out);
    codes += size, out += 2 * size, count -= size;
  }
}

void look_up_runs_on(const std::uint16_t* tables, TableRuns runs, const std::uint8_t* codes, std::size_t count,
                     std::byte* out) {
  const auto index = [](auto, auto code) { return code; };
  const auto finish = [](auto, auto element, auto) { return element; };
  for_each_run(tables, runs, codes, count, out,
               [&](const std::uint16_t* table, const std::uint8_t* some, std::size_t size, std::byte* to) {
                 look_up_run(table, some, size, to, index, finish);
               });
}

// Magnitudes from 8 on differ from each other in the three lowest bits, and by powers of two, which are added to the
// exponent.
void e4m3_runs_on(const std::uint16_t* tables, TableRuns runs, const std::uint8_t* codes, std::size_t count,
                  std::byte* out) {
  const auto index = [](auto d, auto code) {
    const auto normal = hn::Or(hn::And(code, hn::Set(d, 7)), hn::Set(d, 8));
    return hn::Min(hn::And(code, hn::Set(d, 0x7F)), normal);
  };
  const auto finish = [](auto d, auto element, auto code) {
    const auto exponent = hn::ShiftLeft<4>(hn::And(code, hn::Set(d, 0x78)));
    const auto sign = hn::ShiftLeft<8>(hn::And(code, hn::Set(d, 0x80)));
    return hn::Xor(hn::Add(element, exponent), sign);
  };
  for_each_run(tables, runs, codes, count, out,
               [&](const std::uint16_t* table, const std::uint8_t* some, std::size_t size, std::byte* to) {
                 look_up_run(table, some, size, to, index, finish);
               });
}

bool has_e4m3_nan(const std::uint8_t* codes, std::size_t count) {
  const hn::ScalableTag<std::uint8_t> d;
  auto most = hn::Zero(d);
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= count; i += hn::Lanes(d))
    most = hn::Max(most, hn::And(hn::LoadU(d, codes + i), hn::Set(d, 0x7F)));
  bool has_nan = !hn::AllFalse(d, hn::Eq(most, hn::Set(d, 0x7F)));
  for (; i < count; ++i) has_nan = has_nan || (codes[i] & 0x7F) == 0x7F;
  return has_nan;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace ballast::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ballast::kernels {
namespace {

HWY_EXPORT(look_up_runs_on);
HWY_EXPORT(e4m3_runs_on);
HWY_EXPORT(has_e4m3_nan);

}  // namespace

void look_up_runs(const std::uint16_t* tables, TableRuns runs, std::span<const std::uint8_t> codes,
                  std::byte* out) noexcept {
  HWY_DYNAMIC_DISPATCH(look_up_runs_on)(tables, runs, codes.data(), codes.size(), out);
}

bool e4m3_runs(const std::uint16_t* tables, TableRuns runs, std::span<const std::byte> codes, std::byte* out) noexcept {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(codes.data());
  if (HWY_DYNAMIC_DISPATCH(has_e4m3_nan)(bytes, codes.size())) return false;
  HWY_DYNAMIC_DISPATCH(e4m3_runs_on)(tables, runs, bytes, codes.size(), out);
  return true;
}

}  // namespace ballast::kernels
#endif  // HWY_ONCE
