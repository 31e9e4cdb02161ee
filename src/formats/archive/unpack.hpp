// One packed stream that is a file of its own: gzip, zlib or zstd.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <ballast/source.hpp>

namespace ballast::archive {

enum class Packing : std::uint8_t { gzip, zlib, zstd };
std::string_view name(Packing packing) noexcept;  // "gzip", "zlib", "zstd"

// By the first bytes. Two bytes are no magic: whether numbers only look like a zlib stream shows when they are
// unpacked.
std::optional<Packing> packing_of(std::string_view first_bytes) noexcept;

struct Unpacked {
  enum class End : std::uint8_t { whole, broken, too_large };
  End end = End::broken;
  std::vector<std::byte> bytes;
};

// What the stream unpacks to, and no more than `most` bytes of it. Several gzip members or zstd frames behind each
// other are one stream. Bytes behind the end are `broken`: two programs could see two things there.
Unpacked unpack(const Source& source, Packing packing, std::uint64_t most);

}  // namespace ballast::archive
