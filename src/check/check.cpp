#include <ballast/check.hpp>
#include <ballast/error.hpp>
#include <ballast/open.hpp>
#include <ballast/problems.hpp>
#include <ballast/remote.hpp>
#include <ballast/scan.hpp>
#include <ballast/verify.hpp>

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "check/collector.hpp"
#include "check/tensors.hpp"
#include "core/text.hpp"
#include "llamacpp/model_faults.hpp"

namespace ballast {
namespace {

void look_for_code(const std::string& target, const CheckOptions& options, FindingCollector& out) {
  const ScanReport report = scan(target, {options.open, options.policy.trusted});
  std::set<std::pair<std::string, std::string>> seen;  // a name is said once for a file
  for (const ScannedGlobal& global : report.globals) {
    if (global.verdict == Verdict::known) continue;
    const std::string called = global.module + "." + global.name;
    if (!seen.emplace(global.file, called).second) continue;
    const bool is_dangerous = global.verdict == Verdict::dangerous;
    out.add(is_dangerous ? "unsafe" : "unknown-code", global.file, {},
            fmt::format("{} is {}{}", called, global.use, global.why.empty() ? "" : fmt::format(": {}", global.why)));
  }
  for (const ScanFinding& finding : report.findings)
    out.add(finding.verdict == Verdict::dangerous ? "unsafe" : "unknown-code", finding.where, {}, finding.what);
}

// Bytes are read only where a file has checksums of them: the values are read in any case.
void look_at_structure(const std::string& target, const Checkpoint& checkpoint, const CheckOptions& options,
                       FindingCollector& out) {
  VerifyOptions how{.open = options.open, .progress = options.progress};
  constexpr Format kWithSums[] = {Format::torch_zip, Format::torchscript, Format::npz, Format::archive};
  how.read_data = std::ranges::count(kWithSums, checkpoint.format) != 0;
  for (const Finding& finding : verify(target, how).findings) out.add("malformed", finding.where, {}, finding.what);
}

void look_at_values(const Checkpoint& checkpoint, const CheckOptions& options, FindingCollector& out) {
  const ProblemReport report = find_problems(
      checkpoint, {.threads = options.threads, .progress = options.progress, .limits = options.open.limits});
  for (const Problem& problem : report.problems) out.add(name(problem.kind), {}, problem.tensor, problem.text);
}

void look_at_configuration(const Checkpoint& checkpoint, const CheckOptions& options, FindingCollector& out) {
  using Kind = llamacpp::ModelFault::Kind;
  for (const llamacpp::ModelFault& fault : llamacpp::find_model_faults(checkpoint, options.open)) {
    const std::string_view rule = fault.kind == Kind::missing         ? "missing"
                                  : fault.kind == Kind::contradiction ? "contradiction"
                                  : fault.kind == Kind::left_over     ? "left-over"
                                                                      : "configuration";
    out.add(rule, {}, fault.tensor, fault.what);
  }
}

CheckedTarget check_one(const std::string& target, const CheckOptions& given) {
  CheckOptions options = given;
  options.open = options_for(target, given.open);
  options.open.cache = Cache::ignore;
  CheckedTarget checked{.target = target, .findings = {}};
  FindingCollector out(target, options.policy, checked.findings);
  try {
    look_for_code(target, options, out);
    const Checkpoint checkpoint = open(target, options.open);
    checked.tensors = checkpoint.size();
    for (const CheckpointFile& file : checkpoint.files) checked.bytes += file.bytes;
    if (checkpoint.size() == 0) out.add("missing", {}, {}, "there are no tensors");
    look_at_structure(target, checkpoint, options, out);
    look_at_values(checkpoint, options, out);
    look_at_configuration(checkpoint, options, out);
    look_at_tensors(checkpoint, options, out);
    look_at_folder(checkpoint, options, out);
  } catch (const Error& error) {
    if (error.code() == Errc::cancelled) throw;
    const bool says_so = error.message().find("cannot be opened") != std::string::npos;
    const bool is_absent = error.code() == Errc::not_found;
    out.add(is_absent ? "missing" : "malformed", error.where(), {},
            (says_so || is_absent ? "" : "cannot be opened: ") + error.message());
  }
  std::ranges::stable_sort(checked.findings, std::ranges::greater(), &CheckFinding::level);
  return checked;
}

// A folder that leaves open which checkpoint is meant is all of them.
std::vector<std::string> inner_targets(const std::string& target, const OpenOptions& options) {
  try {
    static_cast<void>(open(target, options));
  } catch (const Error& error) {
    if (error.code() == Errc::invalid_argument) {
      if (auto choices = choices_in(target, options); choices.size() > 1) return choices;
    }
  }
  return {target};
}

}  // namespace

std::uint64_t CheckedTarget::failures() const noexcept {
  return static_cast<std::uint64_t>(std::ranges::count(findings, CheckLevel::fail, &CheckFinding::level));
}

bool CheckReport::passes() const noexcept { return std::ranges::all_of(targets, &CheckedTarget::passes); }

CheckReport check(const std::vector<std::string>& targets, const CheckOptions& options) {
  CheckReport report;
  for (const std::string& target : targets) {
    const OpenOptions open_options = options_for(target, options.open);
    if (!open_options.files->exists(target) && !open_options.files->list(target))
      throw Error(Errc::not_found, "there is no such file or folder").in(target);
    for (const std::string& inner : inner_targets(target, open_options))
      report.targets.push_back(check_one(inner, options));
  }
  return report;
}

}  // namespace ballast
