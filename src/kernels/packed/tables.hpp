// Codes of a few bits turned into elements of 16 bits, by tables that runs of codes share.
//
// No pointer needs to be aligned, and no two spans overlap. The functions own nothing, and none of them fails.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace ballast::kernels {

inline constexpr std::size_t kTableElements = 16;

// Which run a code belongs to: code i to run (first + i) / size. Tables lie one after the other.
struct TableRuns {
  std::uint64_t size, first;
};

// Element i is the one that the table of its run has for codes[i], which is below 16. `out` has two bytes for each
// code.
void look_up_runs(const std::uint16_t* tables, TableRuns runs, std::span<const std::uint8_t> codes,
                  std::byte* out) noexcept;

// The same for codes of F8_E4M3 and elements of BF16. A table has what the magnitudes 0 to 7 become, and behind these
// half of what 8 to 15 become; no element of it but the first is zero, subnormal or infinite, and neither are the
// elements of the other codes. Returns false if a code is NaN: the elements are then wrong.
bool e4m3_runs(const std::uint16_t* tables, TableRuns runs, std::span<const std::byte> codes, std::byte* out) noexcept;

}  // namespace ballast::kernels
