// The central directory of a zip: what it says about each member, before the local headers are asked.
#pragma once

#include <vector>

#include <ballast/limits.hpp>

#include "formats/archive/header_window.hpp"
#include "formats/archive/zip_end.hpp"
#include "formats/archive/zip_report.hpp"

namespace ballast::archive {

// Returns members whose data_offset is not known yet. Their header_offset lies before the directory, with room for a
// header.
std::vector<ZipMember> read_central_directory(const ZipDirectory& directory, HeaderWindow& window, const Limits& limits,
                                              ZipReport& report);

// Reports a member that needs a version of the format that nobody knows. `offset` is that of the header that says so.
void check_version(std::string_view name, std::uint16_t version, std::uint64_t offset, ZipReport& report);

}  // namespace ballast::archive
