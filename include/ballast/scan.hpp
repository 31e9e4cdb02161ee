// scan: every global that the pickles of a file name, with a verdict on each. Nothing is run, imported or extracted.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <ballast/global.hpp>
#include <ballast/open.hpp>

namespace ballast {

struct ScanFinding {
  std::string where;  // a file, or "FILE!/MEMBER"
  std::optional<std::uint64_t> offset;
  std::string what;
};

struct ScannedGlobal : Global {
  std::string file;  // of a folder: which of its files; empty where the target is a file
};

struct ScanReport {
  std::vector<ScannedGlobal> globals;  // each mention of one, in the order of the file
  std::vector<ScanFinding> findings;   // what is wrong with the structure
  std::uint64_t files = 0;             // looked at
  std::uint64_t pickles = 0;           // members, files or strings that held one

  bool is_safe() const noexcept;  // nothing dangerous is named
};

// A file, or every file of a folder and of the folders in it; links to files are followed, links to folders are not:
// one that leads out of the folder is a finding. Lenient about structure: what a strict reading would refuse is a
// finding, and the globals are named all the same. Files that hold no pickles at all (safetensors, GGUF) are safe
// unless they are something else as well. Throws if the target cannot be read (Errc::io), or
// is of no kind that Ballast knows (Errc::unsupported, as verify() does). In a folder, a file
// that cannot be read or looked into is a finding, and one of no kind that Ballast knows (a README) is none.
ScanReport scan(const std::string& target, const OpenOptions& options = {});

}  // namespace ballast
