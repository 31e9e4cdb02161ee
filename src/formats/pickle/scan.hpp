// Looks for globals in bytes that may hold pickles: one after the other, broken ones, and those hidden in the strings
// of others. It is lenient about structure: an error becomes a finding, and what was seen before it still counts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ballast/global.hpp>
#include <ballast/limits.hpp>

#include "formats/pickle/graph.hpp"
#include "formats/pickle/hidden.hpp"
#include "formats/pickle/judge.hpp"

namespace ballast::pickle {

struct ScanFinding {
  std::string member;
  std::uint64_t offset = 0;
  std::string what;
  Verdict verdict = Verdict::unknown;
};

// A string that is a file of another kind, for the caller to look into.
struct HiddenFile {
  SourcePtr source;
  std::string member;
  std::uint64_t depth = 0;  // 1 in a pickle that was asked about, 2 in a pickle that lies in a string of that one, ...
  bool is_loaded = false;   // the pickle hands it to a loader: it counts as a pickle if it is nothing else
};

struct Scan {
  std::vector<std::string> trusted;  // given by the caller: see judge()
  std::vector<JudgedGlobal> globals;
  std::vector<ScanFinding> findings;
  std::vector<HiddenFile> files;
  bool computes_names = false;  // a pickle imports a name that it, or the program that wrote it, computes

  // For bytes of which nobody said that they are a pickle: there are no findings, or the bytes name something that
  // tells. Numbers and texts name nonsense at most.
  bool is_surely_a_pickle() const { return findings.empty() || is_telling(); }
  bool is_telling() const;
};

// Scans every pickle in [first, last) of the source, and every pickle inside their bytes and text (raw, hex or base64),
// down to Limits::max_archive_depth. Globals are reported under `member`; offsets are positions in the source. A nested
// pickle's member is "MEMBER@OFFSET", and so is that of a string for which `is_file` says yes.
void scan_pickles(const SourcePtr& source, std::uint64_t first, std::uint64_t last, const std::string& member,
                  const Limits& limits, Scan& scan, FileTest is_file = nullptr);

}  // namespace ballast::pickle
