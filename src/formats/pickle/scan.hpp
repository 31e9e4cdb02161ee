// Looking for globals in bytes that may hold pickles: one after the other, broken ones, and those hidden in the strings
// of others. Lenient about structure: what is wrong becomes a finding, and what was seen before that still counts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ballast/global.hpp>
#include <ballast/limits.hpp>

#include "formats/pickle/graph.hpp"

namespace ballast::pickle {

struct ScanFinding {
  std::string member;
  std::uint64_t offset = 0;
  std::string what;
};

struct Scan {
  std::vector<Global> globals;
  std::vector<ScanFinding> findings;
};

// Every pickle in [first, last) of the source, and every pickle inside their bytes and text (raw, hex or base64), down
// to Limits::max_archive_depth. `member` is what the globals are reported under; offsets are positions in the source.
// A nested pickle's member is "MEMBER@OFFSET".
void scan_pickles(const io::ByteSourcePtr& source, std::uint64_t first, std::uint64_t last, const std::string& member,
                  const Limits& limits, Scan& scan);

}  // namespace ballast::pickle
