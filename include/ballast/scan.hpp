// scan: what would happen if somebody loaded a file elsewhere: every name that its pickles name, what would be done
// with it and a verdict on that, and what is wrong with the file or could not be looked into. Nothing is run, imported
// or extracted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ballast/checkpoint.hpp>
#include <ballast/global.hpp>
#include <ballast/open_options.hpp>

namespace ballast {

struct ScanFinding {
  std::string where;  // a file, or "FILE!/MEMBER"
  std::optional<std::uint64_t> offset;
  std::string what;
  Verdict verdict = Verdict::unknown;  // or dangerous
  std::string file;                    // that it is about
};

struct ScannedGlobal : Global {
  std::string_view rule;  // that the verdict comes from: "allowlist", "only named", "trusted", "denylist", ...
  std::string_view use;   // that the verdict is about, the weakest of them: "named", "called", "built", ...
  std::string file;       // that names it
};

// True: everything that a loader would look at was looked into, and everything that it would use is known. False:
// something is dangerous. Nothing: neither, because something is unknown or could not be looked into.
using Safe = std::optional<bool>;

struct ScannedFile {
  std::string file;
  Safe safe;
  std::uint64_t pickles = 0;                            // members, files or strings that held one
  std::uint64_t known = 0, unknown = 0, dangerous = 0;  // different names
  std::uint64_t findings = 0;
};

struct ScanReport {
  std::vector<ScannedGlobal> globals;  // each mention of one, in the order of the files
  std::vector<ScanFinding> findings;
  std::vector<ScannedFile> files;

  Safe safe() const noexcept;  // the weakest of the files
  bool is_safe() const noexcept { return safe() == true; }
};

struct ScanOptions : OpenOptions {
  // Patterns over "module.name" ("ultralytics.*"), which make unknown names known. No dangerous name becomes known so.
  std::vector<std::string> trusted;
};

// A file, or every file of a folder and of the folders in it; links to files are followed, links to folders are not:
// one that leads out of the folder is a finding. Lenient about structure: what a strict reading would refuse is a
// finding, and the globals are named all the same. Throws if the target cannot be read (Errc::io), or
// is of no kind that Ballast knows (Errc::unsupported, as verify() does). In a folder, a file that cannot be read or
// looked into is a finding, and one of no kind that Ballast knows (a README) is none.
// With OpenOptions::files of one's own, a folder has the files that list() gives, and no others.
ScanReport scan(const std::string& target, const ScanOptions& options = {});

// Several targets as one: what cannot be read is a finding.
ScanReport scan_all(const std::vector<std::string>& targets, const ScanOptions& options = {});

// Bytes in memory, as a file called `name`.
ScanReport scan_bytes(std::vector<std::byte> bytes, const std::string& name, const ScanOptions& options = {});

// Throws Errc::unsafe for what scan calls dangerous, with the first such name and its byte. save() and
// load_state_dict() ask first.
void refuse_dangerous(const Checkpoint& checkpoint);

// One row of the allowlist, for documents.
struct AllowedUse {
  std::string name;   // "collections.OrderedDict"; "torch.nn.modules.*" for the classes there
  std::string uses;   // "called, built, given a state"
  std::string given;  // what it may be given; empty: anything
  std::string why;
};
std::vector<AllowedUse> scan_allowlist();

}  // namespace ballast
