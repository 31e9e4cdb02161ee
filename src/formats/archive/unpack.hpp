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

// The packing that the first bytes show. The two bytes of zlib are not a magic: only unpacking tells whether numbers
// merely look like a zlib stream.
std::optional<Packing> packing_of(std::string_view first_bytes) noexcept;

struct Unpacked {
  enum class End : std::uint8_t { whole, broken, too_large };
  End end = End::broken;
  std::vector<std::byte> bytes;
};

// Unpacks the stream, up to `most` bytes. Several gzip members or zstd frames behind each other are one stream. Bytes
// behind the end make it `broken`: two programs could see two things there.
Unpacked unpack(const Source& source, Packing packing, std::uint64_t most);

}  // namespace ballast::archive
