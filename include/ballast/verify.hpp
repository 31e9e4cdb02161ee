// verify: checks the whole structure, compares the index with its shards, and reads every byte.
//
// Data with checksums in the file are read a second time, and a manifest takes another pass over all data. verify() may
// be called from several threads at once. The report owns everything in it.
//
// Example:
//   const VerifyReport report = verify("model.safetensors.index.json");
#pragma once

#include <string>
#include <vector>

#include <ballast/open.hpp>
#include <ballast/progress.hpp>
#include <ballast/team.hpp>

namespace ballast {

struct Finding {
  std::string where;  // a file
  std::string what;
};

struct VerifyReport {
  std::vector<Finding> findings;
  std::uint64_t tensors = 0;
  std::uint64_t bytes_read = 0;

  bool ok() const noexcept { return findings.empty(); }
};

struct VerifyOptions {
  OpenOptions open{};
  bool read_data = true;   // read every byte, so that a bad disk is found
  std::string manifest{};  // a file that says what the tensors must be: see manifest.hpp; empty: none
  Progress progress{};
  Team* team = nullptr;  // the processes that read the data together: see team.hpp
};

// A target that cannot be opened gives one finding. Throws for a target that does not exist (Errc::not_found), for a
// manifest that cannot be read, and for a file that is not damaged but something else: not a checkpoint, or of a kind
// that Ballast does not read (Errc::unsupported).
VerifyReport verify(const std::string& target, const VerifyOptions& options = {});

}  // namespace ballast
