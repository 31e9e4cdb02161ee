// One block of 512 bytes that begins a tar member, and the pax records that may stand before it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace ballast::archive {

inline constexpr std::uint64_t kTarBlockBytes = 512;

struct TarHeader {
  std::string name;
  char type = '0';
  std::uint64_t bytes = 0;
};

// Whether the checksum is the sum of the block's bytes, as unsigned numbers, or as signed ones, as some old tars did
// it.
bool has_tar_checksum(std::span<const std::byte> block) noexcept;

// Throws Errc::malformed. `offset` is where the block begins in the file.
TarHeader read_tar_header(std::span<const std::byte> block, std::uint64_t offset);

// What pax records say about the member after them.
struct PaxRecords {
  std::optional<std::string> path;
  std::optional<std::uint64_t> size;
};

// Throws Errc::malformed, and Errc::unsupported for a record that would change how the data are read.
PaxRecords read_pax_records(std::string_view text, std::uint64_t offset);

}  // namespace ballast::archive
