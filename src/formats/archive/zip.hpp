// A strict reader of zip directories: it refuses what two programs could understand differently.
//
//   local header, name, extra, data [, descriptor]   once a member, from the first byte of the file on
//   central directory                                one entry a member
//   zip64 end record, zip64 locator                  if needed, and allowed if not
//   end record, comment                              ends at the last byte
//
// Reading a directory reads the headers and no member's data. If the source is far away (Source::bytes_per_round_trip),
// a strict reading leaves the local headers for later: each is read and checked when its member is read.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ballast/limits.hpp>
#include <ballast/source.hpp>
#include <ballast/storage.hpp>

namespace ballast::archive {

struct ZipMember {
  std::string name;          // as it is in the file: bytes, never used as a path
  std::uint16_t method = 0;  // 0 stored, 8 deflated
  std::uint16_t flags = 0;
  std::uint32_t crc32 = 0;
  std::uint64_t packed_bytes = 0;  // in the file
  std::uint64_t bytes = 0;         // unpacked
  std::uint64_t header_offset = 0;
  std::uint64_t data_offset = 0;  // 0 if the local header, which says it, is read with the data
  std::uint64_t next_offset = 0;  // if data_offset is 0: where the next member, or the directory, begins

  bool is_stored() const noexcept { return method == 0; }
  bool is_folder() const noexcept { return name.ends_with('/'); }
};

struct ZipFinding {
  std::uint64_t offset = 0;
  std::string what;
};

enum class ZipReading : std::uint8_t {
  strict,   // the first violation is thrown, Errc::malformed (encryption and other methods: Errc::unsupported)
  lenient,  // violations are collected; every member is there that the directory or a local header leads to. For scan:
            // it reads the data, too, if only they say how far a member goes
};

struct Zip {
  SourcePtr source;
  std::vector<ZipMember> members;    // in the order of the central directory
  std::vector<ZipFinding> findings;  // of a lenient reading; a strict one has none
  ZipReading reading = ZipReading::strict;

  const ZipMember* find(std::string_view name) const noexcept;  // linear: for a handful of questions
};

// Whether the first bytes of a file are those of a zip.
bool looks_like_zip(std::span<const std::byte> first_bytes);

Zip read_zip(const SourcePtr& source, const Limits& limits, ZipReading reading = ZipReading::strict);

// The bytes of a member: a view of the file if the member is stored, inflated as it is read (sequentially, never past
// the declared size) if it is deflated. Both declare their CRC-32.
StoragePtr member_storage(const Zip& zip, const ZipMember& member);

// A member as a source of its own, called "FILE!/MEMBER". A deflated one is inflated whole into memory, up to
// Limits::max_inflated_bytes.
SourcePtr member_source(const Zip& zip, const ZipMember& member, const Limits& limits);

// Announces that these members will be read soon.
void prefetch(const Zip& zip, std::span<const ZipMember* const> members);

}  // namespace ballast::archive
