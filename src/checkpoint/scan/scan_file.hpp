// What one file would do to whoever loads it: the names that its pickles use, what is wrong with it, and what could not
// be looked into. Lenient about structure: an error that a reader would throw becomes a finding. scan() reports the
// result, and refuse_dangerous() acts on it.
#pragma once

#include <vector>

#include <ballast/scan.hpp>
#include <ballast/source.hpp>

namespace ballast {

struct FileScan {
  std::vector<ScannedGlobal> globals;
  std::vector<ScanFinding> findings;
  std::uint64_t pickles = 0;  // members, files or strings that held a pickle

  Verdict weakest() const noexcept;
};

enum class ScanFor : std::uint8_t {
  target,  // throws Errc::io and Errc::unsupported if all there is to say is that it is not a checkpoint
  folder,  // a file of a kind that Ballast does not know is passed over
  danger,  // only dangerous findings count: what readers check is not checked again
};
FileScan scan_file(const SourcePtr& source, const ScanOptions& options, ScanFor purpose);

}  // namespace ballast
