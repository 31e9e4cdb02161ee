#include "formats/archive/zip_central.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "core/checked.hpp"
#include "core/cursor.hpp"
#include "core/remedy.hpp"
#include "core/text.hpp"
#include "formats/archive/repeated_names.hpp"
#include "formats/archive/zip_extra.hpp"
#include "formats/archive/zip_format.hpp"

namespace ballast::archive {

namespace {

// A directory is read at once, if it is no larger than this.
constexpr std::uint64_t kDirectoryReadAhead = 4 << 20;

struct Flag {
  std::uint16_t bits;
  const char* what;
};

// What these bits say (how hard the deflater tried, a descriptor, a UTF-8 name) changes nothing or is checked.
constexpr std::uint16_t kHarmlessFlags = (1 << 1) | (1 << 2) | kHasDescriptor | kNameIsUtf8;
constexpr std::array kFlags = {
    Flag{1 << 0, "is encrypted"},
    Flag{1 << 5, "is a patch to another file"},
    Flag{1 << 6, "is encrypted"},
    Flag{1 << 13, "has its header encrypted"},
    Flag{static_cast<std::uint16_t>(~kHarmlessFlags), "has flags whose meaning is not defined"},
};

struct CentralHeader {
  ZipMember member;
  std::uint16_t version = 0, disk = 0;
  std::uint64_t name_bytes = 0, extra_bytes = 0, comment_bytes = 0;

  std::uint64_t size() const noexcept { return kCentralHeaderBytes + name_bytes + extra_bytes + comment_bytes; }
};

//  1. signature PK 1 2                             4
//  2. version made by, version needed              2 + 2
//  3. flags, method                                2 + 2
//  4. time, date                                   2 + 2
//  5. CRC-32, packed size, unpacked size           4 + 4 + 4
//  6. lengths of name, extra field, comment        2 + 2 + 2
//  7. disk                                         2
//  8. internal and external attributes             2 + 4
//  9. offset of the local header                   4
// 10. name, extra field, comment
CentralHeader read_fixed_part(std::span<const std::byte> bytes, std::uint64_t offset) {
  Cursor in(bytes, offset);
  if (in.string(4, "directory entry") != kCentralHeader)
    throw Error(Errc::malformed, "the directory has something else where an entry should begin").at_byte(offset);
  CentralHeader header;
  in.skip(2, "version made by");
  header.version = in.u16("version needed");
  header.member.flags = in.u16("flags");
  header.member.method = in.u16("method");
  in.skip(4, "time and date");
  header.member.crc32 = in.u32("CRC-32");
  header.member.packed_bytes = in.u32("packed size");
  header.member.bytes = in.u32("unpacked size");
  header.name_bytes = in.u16("length of the name");
  header.extra_bytes = in.u16("length of the extra field");
  header.comment_bytes = in.u16("length of the comment");
  header.disk = in.u16("disk number");
  in.skip(6, "attributes");
  header.member.header_offset = in.u32("offset of the local header");
  return header;
}

// A number that the zip64 field has without need must repeat one that is known.
void check_spare_numbers(const SpareNumbers& spare, const ZipMember& member, std::uint64_t offset, ZipReport& report) {
  for (std::size_t i = 0; i < spare.count; ++i) {
    const std::uint64_t value = spare.values[i];
    if (value == member.bytes || value == member.packed_bytes || value == member.header_offset) continue;
    report.add(
        Error(Errc::malformed, fmt::format("the zip64 field of member {} holds {}, which is neither its size nor "
                                           "its place",
                                           quote(member.name), value))
            .at_byte(offset));
  }
}

void check_name(const ZipMember& member, std::uint64_t offset, ZipReport& report) {
  if (member.name.empty()) report.add(Error(Errc::malformed, "a member has no name").at_byte(offset));
  // Python ends the name at a zero byte, other readers do not.
  if (const auto nul = member.name.find('\0'); nul != std::string::npos)
    report.add(Error(Errc::malformed, fmt::format("the name {} has a zero byte in it", quote(member.name)))
                   .at_byte(offset + nul));
  if ((member.flags & kNameIsUtf8) != 0 && valid_utf8_prefix(member.name) != member.name.size())
    report.add(Error(Errc::malformed, fmt::format("the name {} is no UTF-8, but its flags say so", quote(member.name)))
                   .at_byte(offset + valid_utf8_prefix(member.name)));
}

void check_sizes(const ZipMember& member, std::uint64_t offset, ZipReport& report) {
  if (member.method == kStored && member.packed_bytes != member.bytes)
    report.add(Error(Errc::malformed, fmt::format("member {} is stored, but {} bytes are said to become {}",
                                                  quote(member.name), member.packed_bytes, member.bytes))
                   .at_byte(offset));
  // NumPy reads such a member, and other programs make a folder of it.
  if (member.is_folder() && member.bytes != 0)
    report.add(Error(Errc::malformed,
                     fmt::format("member {} is called a folder, but has {} bytes", quote(member.name), member.bytes))
                   .at_byte(offset));
  const auto most = checked_mul(member.packed_bytes, kMaxDeflateRatio);
  if (member.method == kDeflated && most && member.bytes > *most)
    report.add(Error(Errc::malformed, fmt::format("member {} says that {} bytes inflate to {}, more than 1032 times as "
                                                  "many",
                                                  quote(member.name), member.packed_bytes, member.bytes))
                   .at_byte(offset));
}

void check_flags_and_method(const ZipMember& member, std::uint64_t offset, ZipReport& report) {
  for (const Flag& flag : kFlags) {
    if ((member.flags & flag.bits) == 0) continue;
    report.add(Error(Errc::unsupported,
                     fmt::format("member {} {} (flags {:#06x})", quote(member.name), flag.what, member.flags))
                   .at_byte(offset)
                   .hint("unpack the archive with the program that made it"));
    break;
  }
  if (member.method != kStored && member.method != kDeflated)
    report.add(
        Error(Errc::unsupported, fmt::format("member {} is packed by method {}, which is neither 0 (stored) nor 8 "
                                             "(deflated)",
                                             quote(member.name), member.method))
            .at_byte(offset)
            .hint("pack the archive again, stored or deflated"));
}

// Name, extra field and comment follow the fixed part.
void read_rest(CentralHeader& header, std::span<const std::byte> bytes, std::uint64_t offset, ZipReport& report) {
  ZipMember& member = header.member;
  Cursor in(bytes, offset);
  in.skip(kCentralHeaderBytes, "directory entry");
  member.name = in.string(header.name_bytes, "name");
  check_name(member, offset + kCentralHeaderBytes, report);

  const std::uint64_t extra_offset = in.position();
  ZipNumbers numbers{member.bytes, member.packed_bytes, member.header_offset, header.disk};
  try {
    const ZipExtra extra = read_extra(in.bytes(header.extra_bytes, "extra field"), extra_offset);
    const SpareNumbers spare = resolve_zip64(extra, true, numbers);
    member.bytes = numbers.bytes;
    member.packed_bytes = numbers.packed_bytes;
    member.header_offset = numbers.header_offset;
    check_spare_numbers(spare, member, extra_offset, report);
    require_one_name(extra, member.name);
  } catch (Error& error) {
    report.add(error.at_byte(offset));
  }
  in.skip(header.comment_bytes, "comment");
  if (numbers.disk != 0)
    report.add(Error(Errc::unsupported, fmt::format("member {} is on disk {} of an archive in several parts",
                                                    quote(member.name), numbers.disk))
                   .at_byte(offset));
  check_version(member.name, header.version, offset, report);
  check_flags_and_method(member, offset, report);
  check_sizes(member, offset, report);
}

// The signature of an end record inside a directory entry makes libzip look for a directory elsewhere.
void check_no_end_record(const ZipMember& member, std::span<const std::byte> bytes, std::uint64_t offset,
                         ZipReport& report) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (const auto found = text.find(kEndRecord, kCentralHeaderBytes); found != text.npos)
    report.add(
        Error(Errc::malformed,
              fmt::format("the directory entry of member {} has an end record's signature in it", quote(member.name)))
            .at_byte(offset + found));
}

CentralHeader read_entry(std::uint64_t at, std::uint64_t end, HeaderWindow& window, ZipReport& report) {
  const std::uint64_t ahead = std::min(end - at, kDirectoryReadAhead);
  CentralHeader header = read_fixed_part(window.at(at, std::min(end - at, kCentralHeaderBytes), ahead), at);
  const auto bytes = window.at(at, std::min(end - at, header.size()), ahead);
  read_rest(header, bytes, at, report);
  check_no_end_record(header.member, bytes, at, report);
  return header;
}

bool is_before_directory(ZipMember& member, const ZipDirectory& directory, std::uint64_t at, ZipReport& report) {
  const auto offset = checked_add(member.header_offset, directory.shift);
  if (offset && is_inside(*offset, kLocalHeaderBytes, directory.offset)) {
    member.header_offset = *offset;
    return true;
  }
  report.add(Error(Errc::malformed, fmt::format("the local header of member {} would be at byte {}, but the directory "
                                                "begins at byte {}",
                                                quote(member.name), member.header_offset, directory.offset))
                 .at_byte(at));
  return false;
}

void require_few(std::uint64_t count, const Limits& limits, ZipReport& report) {
  if (count <= limits.max_archive_members) return;
  report.add(
      Error(Errc::limit, fmt::format("has {} members, more than the {} allowed", count, limits.max_archive_members))
          .hint(raise_limit("max_archive_members")));
}

void check_names_differ(const std::vector<ZipMember>& members, ZipReport& report) {
  for (const std::size_t i : repeated_names(members)) {
    if (report.is_full()) return;
    report.add(Error(Errc::malformed, fmt::format("two members are called {}", quote(members[i].name)))
                   .at_byte(members[i].header_offset));
  }
}

void check_count(std::uint64_t found, const ZipDirectory& directory, ZipReport& report) {
  if (found == directory.member_count) return;
  report.add(Error(Errc::malformed, fmt::format("the directory has {} members, but the end record says {}", found,
                                                directory.member_count))
                 .at_byte(directory.offset));
}

}  // namespace

void check_version(std::string_view name, std::uint16_t version, std::uint64_t offset, ZipReport& report) {
  const int needed = version & 0xFF;  // the upper byte says for which system
  if (needed > kNewestVersion)
    report.add(Error(Errc::unsupported,
                     fmt::format("member {} needs version {}.{} of the format", quote(name), needed / 10, needed % 10))
                   .at_byte(offset));
}

std::vector<ZipMember> read_central_directory(const ZipDirectory& directory, HeaderWindow& window, const Limits& limits,
                                              ZipReport& report) {
  // A count is a promise about bytes that must follow.
  const std::uint64_t room = directory.bytes / kCentralHeaderBytes;
  if (directory.member_count > room) check_count(room, directory, report);
  require_few(std::min(directory.member_count, room), limits, report);

  std::vector<ZipMember> members;
  members.reserve(static_cast<std::size_t>(std::min(directory.member_count, room)));
  const std::uint64_t end = directory.offset + directory.bytes;
  std::uint64_t entries = 0;
  try {
    for (std::uint64_t at = directory.offset; at < end; ++entries) {
      require_few(entries + 1, limits, report);
      CentralHeader header = read_entry(at, end, window, report);
      if (is_before_directory(header.member, directory, at, report)) members.push_back(std::move(header.member));
      at += header.size();
    }
  } catch (const Error& error) {
    report.add(error);
  }
  check_count(entries, directory, report);
  check_names_differ(members, report);
  return members;
}

}  // namespace ballast::archive
