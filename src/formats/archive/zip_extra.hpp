// The extra field of a zip header: a list of tagged records, two of which say things that the header says too.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "formats/archive/zip_report.hpp"

namespace ballast::archive {

struct ZipExtra {
  std::optional<std::span<const std::byte>> zip64;          // tag 1
  std::optional<std::span<const std::byte>> unicode_name;   // tag 0x7075
  std::uint64_t zip64_offset = 0, unicode_name_offset = 0;  // of their contents in the file
};

// Throws Errc::malformed.
ZipExtra read_extra(std::span<const std::byte> bytes, std::uint64_t offset);

// The numbers of a header that may be in its zip64 field instead. The field has those that are 0xFFFFFFFF in the
// header, in this order.
struct ZipNumbers {
  std::uint64_t bytes = 0, packed_bytes = 0;
  std::uint64_t header_offset = 0;  // of a central header
  std::uint32_t disk = 0;           // of a central header
};

// Takes from the zip64 field the numbers that the header refers to, and returns the other ones. Throws Errc::malformed
// if a number is missing, and if a central header refers to some numbers and not to others, which libzip refuses.
struct SpareNumbers {
  std::array<std::uint64_t, 3> values{};
  std::size_t count = 0;
};
SpareNumbers resolve_zip64(const ZipExtra& extra, bool is_central, ZipNumbers& numbers);

// Readers differ in whether they believe the second name, so it must be the same as the first one. Throws
// Errc::malformed.
void require_one_name(const ZipExtra& extra, std::string_view name);

}  // namespace ballast::archive
