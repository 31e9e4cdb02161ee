// scan: says what would happen if somebody loaded a file in another program. It lists every name in the file's pickles
// with its use and a verdict, and everything that is wrong with the file or could not be looked into. Nothing is run,
// imported or extracted.
//
// The functions may be called from several threads at once. A report owns everything in it, except `rule`, `use` and
// `why`, which live as long as the program.
//
// Example:
//   const ScanReport report = scan("model.pt");
//   if (report.safe() == true) std::cout << "everything that it uses is known\n";
//   for (const ScanFinding& finding : report.findings) std::cout << finding.what << "\n";
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
  Verdict verdict = Verdict::unknown;  // unknown or dangerous
  std::string file;                    // the file that it is about
};

struct ScannedGlobal : Global {
  std::string_view rule;  // where the verdict comes from: "allowlist", "only named", "trusted", "denylist", ...
  std::string_view use;   // what the verdict is about, the worst of all uses: "named", "called", "built", ...
  std::string file;       // the file that names it
};

// True: everything that a loader would look at was looked into, and everything that it would use is known. False:
// something is dangerous. Empty: neither, because something is unknown or could not be looked into.
using Safe = std::optional<bool>;

struct ScannedFile {
  std::string file;
  Safe safe;
  std::uint64_t pickles = 0;                            // members, files or strings that held a pickle
  std::uint64_t known = 0, unknown = 0, dangerous = 0;  // different names
  std::uint64_t findings = 0;
};

struct ScanReport {
  std::vector<ScannedGlobal> globals;  // each mention of a name, in the order of the files
  std::vector<ScanFinding> findings;
  std::vector<ScannedFile> files;

  Safe safe() const noexcept;  // the worst of the files
  bool is_safe() const noexcept { return safe() == true; }
};

struct ScanOptions : OpenOptions {
  // Patterns over "module.name" ("ultralytics.*"), which make unknown names known. A dangerous name stays dangerous.
  std::vector<std::string> trusted;
};

// Scans a file, or every file of a folder and of the folders in it. Links to files are followed, links to folders are
// not; a link that leads out of the folder is a finding. The scan is lenient about structure: what a strict reader
// would refuse is a finding, and the globals are listed all the same. Throws if the target cannot be read (Errc::io),
// or is not of a kind that Ballast knows (Errc::unsupported, as verify() does). In a folder, a file that cannot be read
// or looked into is a finding, and a file of a kind that Ballast does not know (a README) is not. If OpenOptions::files
// is not local_files(), a folder has the files that list() gives, and no others.
ScanReport scan(const std::string& target, const ScanOptions& options = {});

// Scans several targets into one report. A target that cannot be read is a finding.
ScanReport scan_all(const std::vector<std::string>& targets, const ScanOptions& options = {});

// Scans bytes in memory, as a file called `name`.
ScanReport scan_bytes(std::vector<std::byte> bytes, const std::string& name, const ScanOptions& options = {});

// Throws Errc::unsafe if the scan calls something dangerous, with the first such name and its byte. save() and
// load_state_dict() call this first.
void refuse_dangerous(const Checkpoint& checkpoint);

// One row of the allowlist, for documents.
struct AllowedUse {
  std::string name;   // "collections.OrderedDict"; "torch.nn.modules.*" for all classes of these modules
  std::string uses;   // "called, built, given a state"
  std::string given;  // the arguments that it may be given; empty: any
  std::string why;
};
std::vector<AllowedUse> scan_allowlist();

}  // namespace ballast
