// What one file would do to whoever loads it: the names that its pickles use, and what is wrong or out of sight.
// Lenient about structure: what a reader would throw becomes a finding. scan() reports it, and refuse_dangerous() acts
// on it.
#pragma once

#include <vector>

#include <ballast/scan.hpp>
#include <ballast/source.hpp>

namespace ballast {

struct FileScan {
  std::vector<ScannedGlobal> globals;
  std::vector<ScanFinding> findings;
  std::uint64_t pickles = 0;  // members, files or strings that held one

  Verdict weakest() const noexcept;
};

enum class ScanFor : std::uint8_t {
  target,  // throws Errc::io and Errc::unsupported if there is nothing to say but that it is not a checkpoint
  folder,  // a file of no kind that Ballast knows is none of its business
  danger,  // only what is dangerous counts: what readers check is not checked again
};
FileScan scan_file(const SourcePtr& source, const ScanOptions& options, ScanFor purpose);

}  // namespace ballast
