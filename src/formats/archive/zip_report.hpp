// Collects the violations of a zip: a strict reading throws the first one, a lenient reading collects them and goes on.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include <ballast/error.hpp>

#include "formats/archive/zip.hpp"

namespace ballast::archive {

class ZipReport {
 public:
  ZipReport(const Source& source, ZipReading reading) : source_(source), reading_(reading) {}

  bool is_strict() const noexcept { return reading_ == ZipReading::strict; }
  bool has_findings() const noexcept { return !findings_.empty(); }

  // Whether one more finding would not be listed: then nobody needs to write messages for millions of findings.
  bool is_full() const noexcept { return findings_.size() > kMaxFindings; }

  // Returns only if the reading is lenient. An error that is not a violation of the format (a disk that fails, a limit)
  // is thrown by both readings.
  void add(Error error) {
    const bool is_violation = error.code() == Errc::malformed || error.code() == Errc::unsupported;
    if (is_strict() || !is_violation) throw error.in(source_.name());
    if (findings_.size() < kMaxFindings)
      findings_.push_back({error.offset().value_or(0), error.message()});
    else if (findings_.size() == kMaxFindings)
      findings_.push_back({error.offset().value_or(0), "and more of this kind, which are not listed"});
  }

  // For what a lenient reading does itself: the finding is listed, however many there are.
  void note(ZipFinding finding) { findings_.push_back(std::move(finding)); }

  std::vector<ZipFinding> take_findings() { return std::move(findings_); }

 private:
  // Nobody reads more, and a hostile archive could have millions.
  static constexpr std::size_t kMaxFindings = 200;

  const Source& source_;
  ZipReading reading_;
  std::vector<ZipFinding> findings_;
};

}  // namespace ballast::archive
