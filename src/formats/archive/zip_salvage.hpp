// What a lenient reading does beyond a strict one: it finds the members that the directory does not lead to, and bounds
// the work that members can cause.
#pragma once

#include <cstdint>
#include <vector>

#include <ballast/limits.hpp>

#include "formats/archive/header_window.hpp"
#include "formats/archive/zip_report.hpp"

namespace ballast::archive {

// What is known about the directory decides where to look, and whether a member that it does not have is a finding.
enum class ZipDirectoryState : std::uint8_t {
  missing,   // everything is searched
  doubtful,  // nobody can say which directory is right: the data of its members are searched, too
  sound,     // the data of its members are not searched
};

// Looks for local headers, and adds the members that are not there yet.
void add_unlisted_members(const Source& source, ZipDirectoryState directory, std::vector<ZipMember>& members,
                          const Limits& limits, ZipReport& report);

// Gives each deflated member the size that it really has.
void measure_deflated_members(const Source& source, std::vector<ZipMember>& members, const Limits& limits,
                              ZipReport& report);

// Members may overlap in a lenient reading, but not so much that reading all of them takes forever: the rest is left
// out.
void bound_overlaps(const Source& source, std::vector<ZipMember>& members, ZipReport& report);

}  // namespace ballast::archive
