// The local headers of a zip, and the descriptors behind the data: each must say again what the directory says, and
// with the data between them they fill the file up to the directory, without gaps and without overlaps.
#pragma once

#include <vector>

#include "formats/archive/header_window.hpp"
#include "formats/archive/zip_end.hpp"
#include "formats/archive/zip_extra.hpp"
#include "formats/archive/zip_report.hpp"

namespace ballast::archive {

// A member as its local header tells it: sizes and CRC may be zero there, if a descriptor follows the data.
struct ZipLocalHeader {
  ZipMember member;
  std::uint16_t version = 0;
  SpareNumbers spare;  // of its zip64 field
};

// Throws Errc::malformed if there is no local header at `offset`.
ZipLocalHeader read_local_header(std::uint64_t offset, HeaderWindow& window, ZipReport& report);

// Fills in where the data of each member begin. A lenient reading drops a member without a local header, and adds a
// member if the local header differs from the directory; the data of all members then lie inside the file.
void read_local_headers(const Source& source, const ZipDirectory& directory, HeaderWindow& window,
                        std::vector<ZipMember>& members, ZipReport& report);

// Leaves the local headers for later: fills in where the next thing behind each member begins, and checks that the data
// have room before it.
void put_off_local_headers(const ZipDirectory& directory, std::vector<ZipMember>& members, ZipReport& report);

// For a member whose local header was left for later: the ranges that the check reads, and the check, which fills in
// where the data begin.
std::vector<ByteRange> ranges_of_local_header(const ZipMember& member);
void check_local_header(ZipMember& member, HeaderWindow& window, ZipReport& report);

}  // namespace ballast::archive
