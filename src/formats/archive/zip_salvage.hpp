// What a lenient reading does beyond a strict one: the members that the directory does not lead to, and bounds on the
// work that the others can cause.
#pragma once

#include <vector>

#include <ballast/limits.hpp>

#include "formats/archive/header_window.hpp"
#include "formats/archive/zip_report.hpp"

namespace ballast::archive {

// Looks for local headers and adds the members that are not there yet. The data of those that are there are searched
// too if `inside_data`: where nobody can say which directory is the right one.
void add_unlisted_members(const io::ByteSource& source, bool inside_data, std::vector<ZipMember>& members,
                          const Limits& limits, ZipReport& report);

// Gives each deflated member the size that it really has.
void measure_deflated_members(const io::ByteSource& source, std::vector<ZipMember>& members, const Limits& limits,
                              ZipReport& report);

// Members may overlap here, but not so much that reading all of them takes forever: the rest is left out.
void bound_overlaps(const io::ByteSource& source, std::vector<ZipMember>& members, ZipReport& report);

}  // namespace ballast::archive
