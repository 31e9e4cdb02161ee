// verify: the whole structure checked, the index against its shards, every byte readable.
#pragma once

#include <string>
#include <vector>

#include <ballast/open.hpp>
#include <ballast/progress.hpp>

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
  bool read_data = true;   // every byte is read, so that a bad disk shows
  std::string manifest{};  // a file that says what the tensors are: see manifest.hpp
  Progress progress{};
};

// What cannot be opened at all is one finding. Throws for a target that is not there (Errc::not_found), and for a file
// that is not damaged but something else: not a checkpoint, or of a kind that Ballast does not read
// (Errc::unsupported).
VerifyReport verify(const std::string& target, const VerifyOptions& options = {});

}  // namespace ballast
