// The end of a zip: the records that say where its directory is.
#pragma once

#include <cstdint>
#include <optional>

#include "formats/archive/header_window.hpp"
#include "formats/archive/zip_report.hpp"

namespace ballast::archive {

struct ZipDirectory {
  std::uint64_t offset = 0, bytes = 0;
  std::uint64_t member_count = 0;
  std::uint64_t shift = 0;      // bytes before the archive that its offsets do not count; 0 in a strict reading
  bool is_the_only_one = true;  // whether no other end record is nearby, not even in the data of a member
};

// Returns nothing if a lenient reading finds no end record, or one that leads nowhere.
std::optional<ZipDirectory> find_directory(const Source& source, HeaderWindow& window, ZipReport& report);

}  // namespace ballast::archive
