#include "formats/archive/zip_end.hpp"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "core/checked.hpp"
#include "core/cursor.hpp"
#include "formats/archive/zip_format.hpp"

namespace ballast::archive {

namespace {

// The end record and its zip64 twin say the same things, in other widths.
struct EndRecord {
  std::uint64_t offset = 0;  // of the record itself
  std::uint64_t disk = 0, directory_disk = 0;
  std::uint64_t members_on_disk = 0, member_count = 0;
  std::uint64_t directory_bytes = 0, directory_offset = 0;
  std::uint64_t comment_bytes = 0;
  bool is_the_only_one = true;
};

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool begins_with(std::span<const std::byte> bytes, std::string_view magic) { return as_text(bytes).starts_with(magic); }

// 1. signature PK 5 6                      4
// 2. this disk, disk of the directory      2 + 2    zero
// 3. members on this disk, in all          2 + 2
// 4. bytes and offset of the directory     4 + 4
// 5. length of the comment that follows    2
EndRecord read_end_record(std::span<const std::byte> bytes, std::uint64_t offset) {
  Cursor in(bytes, offset);
  in.skip(kEndRecord.size(), "end record");
  EndRecord end{.offset = offset};
  end.disk = in.u16("disk number");
  end.directory_disk = in.u16("disk of the directory");
  end.members_on_disk = in.u16("number of members on this disk");
  end.member_count = in.u16("number of members");
  end.directory_bytes = in.u32("size of the directory");
  end.directory_offset = in.u32("offset of the directory");
  end.comment_bytes = in.u16("length of the comment");
  return end;
}

// 1. signature PK 6 6                      4
// 2. bytes that follow                     8        44: more would be extensions, which nobody writes
// 3. version made by, version needed       2 + 2
// 4. this disk, disk of the directory      4 + 4
// 5. members on this disk, in all          8 + 8
// 6. bytes and offset of the directory     8 + 8
EndRecord read_zip64_end_record(std::span<const std::byte> bytes, std::uint64_t offset) {
  Cursor in(bytes, offset);
  if (in.string(4, "zip64 end record") != kZip64EndRecord)
    throw Error(Errc::malformed, "there is no zip64 end record where its locator says").at_byte(offset);
  if (const std::uint64_t rest = in.u64("size of the zip64 end record"); rest != kZip64EndRecordBytes - 12)
    throw Error(Errc::malformed,
                fmt::format("the zip64 end record says that it has {} more bytes, where 44 are known", rest))
        .at_byte(offset + 4);
  in.skip(4, "versions");
  EndRecord end{.offset = offset};
  end.disk = in.u32("disk number");
  end.directory_disk = in.u32("disk of the directory");
  end.members_on_disk = in.u64("number of members on this disk");
  end.member_count = in.u64("number of members");
  end.directory_bytes = in.u64("size of the directory");
  end.directory_offset = in.u64("offset of the directory");
  return end;
}

// Finds the last end record that has room to be one, which is what every reader looks for first.
//
// Python takes the last signature even if it stands in the comment of a record that fits better, and libzip takes the
// one that fits: so what follows the record must be its comment, whole, and free of signatures. Signatures before the
// record, in the data of members, are allowed: archives of archives are real.
std::optional<EndRecord> find_end_record(const Source& source, HeaderWindow& window, ZipReport& report) {
  const std::uint64_t size = source.size_bytes();
  const std::uint64_t tail_bytes = std::min(size, kEndRecordBytes + 0xFFFF);
  const std::uint64_t tail_offset = size - tail_bytes;
  const std::string_view tail = as_text(window.at(tail_offset, tail_bytes));

  const std::size_t found =
      tail.size() < kEndRecordBytes ? tail.npos : tail.rfind(kEndRecord, tail.size() - kEndRecordBytes);
  if (found == tail.npos) {
    report.add(Error(Errc::malformed, "a zip archive without its end record")
                   .at_byte(size)
                   .hint("the end of the file is missing: was it copied or downloaded completely?"));
    return std::nullopt;
  }
  const std::uint64_t offset = tail_offset + found;
  EndRecord end = read_end_record(window.at(offset, kEndRecordBytes), offset);
  end.is_the_only_one = tail.find(kEndRecord) == tail.rfind(kEndRecord);
  const std::uint64_t follow = tail.size() - found - kEndRecordBytes;
  if (end.comment_bytes != follow)
    report.add(Error(Errc::malformed, fmt::format("{} bytes follow the end record, which says that its comment has {}",
                                                  follow, end.comment_bytes))
                   .at_byte(offset + 20));
  else if (follow != 0 && tail.rfind(kEndRecord) != found)
    report.add(Error(Errc::malformed, "a second end record begins inside the first")
                   .at_byte(tail_offset + tail.rfind(kEndRecord)));
  return end;
}

// 1. signature PK 6 7                      4
// 2. disk of the zip64 end record          4        zero
// 3. its offset                            8
// 4. number of disks                       4        one
std::optional<EndRecord> find_zip64_end_record(HeaderWindow& window, const EndRecord& end, ZipReport& report) {
  if (end.offset < kZip64LocatorBytes) return std::nullopt;
  const std::uint64_t locator = end.offset - kZip64LocatorBytes;
  const auto bytes = window.at(locator, kZip64LocatorBytes);
  if (!begins_with(bytes, kZip64Locator)) return std::nullopt;

  Cursor in(bytes, locator);
  in.skip(kZip64Locator.size(), "zip64 locator");
  const std::uint32_t disk = in.u32("disk of the zip64 end record");
  const std::uint64_t offset = in.u64("offset of the zip64 end record");
  const std::uint32_t disk_count = in.u32("number of disks");
  if (disk != 0 || disk_count != 1)
    report.add(Error(Errc::unsupported, "an archive in several parts").at_byte(locator).hint("join its parts first"));

  // Python reads the record that ends here, wherever the locator points; other readers go where the locator points.
  const std::uint64_t before = locator - std::min(locator, kZip64EndRecordBytes);
  if (offset != before)
    report.add(Error(Errc::malformed, fmt::format("the zip64 locator points to byte {}, but the record before it would "
                                                  "begin at byte {}",
                                                  offset, before))
                   .at_byte(locator + 8));
  return read_zip64_end_record(window.at(before, kZip64EndRecordBytes), before);
}

// The 32-bit record must say the same as the zip64 record, or refer to it.
void require_agreement(const EndRecord& end, const EndRecord& end64, ZipReport& report) {
  struct Field {
    const char* name;
    std::uint64_t narrow, wide, saturated;
  };
  const Field fields[] = {
      {"disk number", end.disk, end64.disk, kIn64Short},
      {"disk of the directory", end.directory_disk, end64.directory_disk, kIn64Short},
      {"number of members on this disk", end.members_on_disk, end64.members_on_disk, kIn64Short},
      {"number of members", end.member_count, end64.member_count, kIn64Short},
      {"size of the directory", end.directory_bytes, end64.directory_bytes, kIn64},
      {"offset of the directory", end.directory_offset, end64.directory_offset, kIn64},
  };
  for (const Field& field : fields) {
    if (field.narrow == field.wide || field.narrow == field.saturated) continue;
    report.add(Error(Errc::malformed, fmt::format("the {} is {} in the end record but {} in the zip64 end record",
                                                  field.name, field.narrow, field.wide))
                   .at_byte(end.offset));
  }
}

void require_one_disk(const EndRecord& end, ZipReport& report) {
  if (end.disk != 0 || end.directory_disk != 0)
    report.add(
        Error(Errc::unsupported, "an archive in several parts").at_byte(end.offset).hint("join its parts first"));
  if (end.members_on_disk != end.member_count)
    report.add(Error(Errc::malformed, fmt::format("the end record counts {} members on this disk but {} in all",
                                                  end.members_on_disk, end.member_count))
                   .at_byte(end.offset));
}

// The directory ends where the end records begin. A lenient reading does as Python does: it takes the bytes that end
// there for the directory, and the bytes that are then too many lie before the archive.
std::optional<ZipDirectory> locate(const EndRecord& end, ZipReport& report) {
  ZipDirectory directory{end.directory_offset, end.directory_bytes, end.member_count};
  const auto directory_end = checked_add(end.directory_offset, end.directory_bytes);
  if (directory_end == end.offset) return directory;

  report.add(Error(Errc::malformed, fmt::format("a directory of {} bytes at byte {} does not end where the end record "
                                                "begins, at byte {}",
                                                end.directory_bytes, end.directory_offset, end.offset))
                 .at_byte(end.offset));
  if (!directory_end || *directory_end > end.offset) return std::nullopt;
  directory.shift = end.offset - *directory_end;
  directory.offset += directory.shift;
  return directory;
}

}  // namespace

std::optional<ZipDirectory> find_directory(const Source& source, HeaderWindow& window, ZipReport& report) {
  const auto end = find_end_record(source, window, report);
  if (!end) return std::nullopt;

  EndRecord decisive = *end;
  try {
    if (const auto end64 = find_zip64_end_record(window, *end, report)) {
      require_agreement(*end, *end64, report);
      decisive = *end64;
    }
  } catch (const Error& error) {
    report.add(error);
  }
  require_one_disk(decisive, report);
  auto directory = locate(decisive, report);
  if (directory) directory->is_the_only_one = end->is_the_only_one;
  return directory;
}

}  // namespace ballast::archive
