#include <ballast/error.hpp>
#include <ballast/scan.hpp>

#include <algorithm>

#include <fmt/format.h>

#include "checkpoint/scan/scan_file.hpp"
#include "core/remedy.hpp"
#include "core/text.hpp"

namespace ballast {
namespace {

[[noreturn]] void refuse_file(std::string what, const std::string& where, std::optional<std::uint64_t> offset,
                              std::size_t more) {
  if (more != 0) what += fmt::format(", and {} more {} dangerous", more, more == 1 ? "name is" : "names are");
  Error error = Error(Errc::unsafe, what).in(where);
  if (offset) error.at_byte(*offset);
  throw error.hint(mention(Remedy::scan) + " shows all of it; " + mention(Remedy::allow_dangerous) +
                   " takes the tensors all the same, and runs nothing");
}

void refuse_global(const Global& global, const std::string& file, std::size_t more) {
  std::string what = "names " + quote(global.module + "." + global.name);
  if (!global.why.empty()) what += ", which " + std::string(global.why);
  refuse_file(std::move(what), global.member.empty() ? file : file + "!/" + global.member, global.offset, more);
}

// Refuses what opening the file did not look at: pickles in strings, other members of an archive.
void refuse_scanned(const FileScan& scan, const std::string& file) {
  const auto is_dangerous = [](const auto& one) { return one.verdict == Verdict::dangerous; };
  const auto globals = static_cast<std::size_t>(std::ranges::count_if(scan.globals, is_dangerous));
  if (globals != 0) refuse_global(*std::ranges::find_if(scan.globals, is_dangerous), file, globals - 1);
  const auto finding = std::ranges::find_if(scan.findings, is_dangerous);
  if (finding != scan.findings.end()) refuse_file(finding->what, finding->where, finding->offset, 0);
}

}  // namespace

// Nothing dangerous would get into the output. But the output must not make a harmful file look harmless.
void refuse_dangerous(const Checkpoint& checkpoint) {
  if (!checkpoint.dangerous.empty())
    refuse_global(checkpoint.dangerous.front(), checkpoint.target, checkpoint.dangerous.size() - 1);
  for (const CheckpointFile& file : checkpoint.files) {
    if (!file.source && !local_files()->exists(file.path)) continue;
    const SourcePtr source = file.source ? file.source : file_source(file.path);
    refuse_scanned(scan_file(source, {}, ScanFor::danger), file.path);
  }
}

}  // namespace ballast
