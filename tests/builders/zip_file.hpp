// ZipFile: a zip archive in a line or two, right or wrong, written without the library under test.
//
//   ZipFile().stored("a", "data").deflated("b", "more data")      like Python's zipfile
//   ZipFile().streamed("a", "data").zip64()                       like torch: descriptors, and a zip64 end record
//   ZipFile().stored("a", "x").change([](ZipEntry& e) { e.central.name = "b"; })
//   ZipFile().stored("a", "x").change_end([](ZipEnd& e) { e.member_count = 2; })
//
// change() lies about the last member, in any field. Lengths and offsets that it does not change are right.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ballast/source.hpp>

namespace ballast::test {

std::string little_endian(std::uint64_t value, std::size_t bytes);
std::string u16(std::uint64_t value);
std::string u32(std::uint64_t value);
std::string u64(std::uint64_t value);

// A record of an extra field.
std::string extra_record(std::uint16_t tag, std::string_view content);

std::uint32_t crc32_of(std::string_view data);

// A raw deflate stream, which zip uses: without a header.
std::string deflate_raw(std::string_view data);

// The fields that both headers of a member have.
struct ZipHeader {
  std::uint16_t version = 20, flags = 0, method = 0;
  std::uint32_t crc32 = 0, packed_bytes = 0, bytes = 0;
  std::string name, extra;
  std::optional<std::uint16_t> name_bytes, extra_bytes;
  std::string signature;
};

struct ZipEntry {
  ZipHeader local, central;
  std::string data, descriptor;
  std::string comment;
  std::uint16_t disk = 0;
  std::optional<std::uint16_t> comment_bytes;
  std::optional<std::uint32_t> header_offset;
  std::string before;     // bytes before the local header that no record mentions
  bool is_listed = true;  // has an entry in the central directory
  bool has_local = true;  // has a local header
};

struct ZipEnd {
  std::string before_directory, before_end;  // bytes that do not belong there
  std::uint64_t disk = 0, directory_disk = 0, members_on_disk = 0, member_count = 0;
  std::uint64_t directory_bytes = 0, directory_offset = 0;
  std::string comment;
  std::optional<std::uint16_t> comment_bytes;
};

// The zip64 records. Unless they are changed, they repeat ZipEnd.
struct Zip64End {
  std::uint64_t rest_bytes = 44, disk = 0, directory_disk = 0, members_on_disk = 0, member_count = 0;
  std::uint64_t directory_bytes = 0, directory_offset = 0;
  std::string extension;
  std::uint64_t locator_disk = 0, record_offset = 0, disk_count = 1;
  std::string between;  // bytes between the record and its locator
};

class ZipFile {
 public:
  ZipFile& stored(std::string_view name, std::string_view data);
  ZipFile& deflated(std::string_view name, std::string_view data);

  // Puts sizes and CRC behind the data, as torch does for every member that is not empty.
  ZipFile& streamed(std::string_view name, std::string_view data, bool deflate = false);

  // Adds, as torch does, a record FB to the extra field of the last member's local header, so that its data are
  // aligned.
  ZipFile& aligned(std::size_t alignment = 64);

  ZipFile& change(const std::function<void(ZipEntry&)>& lie);
  ZipFile& comment(std::string_view text);
  // `lie` is called with the right record when the archive is written.
  ZipFile& change_end(std::function<void(ZipEnd&)> lie);
  ZipFile& zip64(std::function<void(Zip64End&)> lie = [](Zip64End&) {});
  // Lists the members in another order in the directory.
  ZipFile& list_in_order(std::vector<std::size_t> order);
  ZipFile& prefix(std::string_view bytes);  // bytes that the offsets do not count
  ZipFile& suffix(std::string_view bytes);

  const std::vector<ZipEntry>& entries() const { return entries_; }

  std::string text() const;

  SourcePtr source() const;

 private:
  ZipFile& add(std::string_view name, std::string_view data, std::string packed, std::uint16_t method);

  static std::string common(const ZipHeader& h);

  // Stores the offset of each local header in `offsets`.
  std::string locals(std::vector<std::uint32_t>* offsets = nullptr) const;

  std::string directory() const;

  ZipEnd right_end() const;

  std::string zip64_records(const ZipEnd& end, std::uint64_t offset) const;

  std::vector<ZipEntry> entries_;
  std::vector<std::function<void(ZipEnd&)>> end_lies_;
  std::function<void(Zip64End&)> zip64_;
  std::vector<std::size_t> order_;
  std::string prefix_, suffix_;
};

}  // namespace ballast::test
