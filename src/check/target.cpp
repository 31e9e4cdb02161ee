#include "check/target.hpp"

#include <ballast/adapter.hpp>
#include <ballast/open.hpp>
#include <ballast/problems.hpp>
#include <ballast/scan.hpp>
#include <ballast/text.hpp>
#include <ballast/verify.hpp>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "check/collector.hpp"
#include "check/tensors.hpp"
#include "checkpoint/pipeline.hpp"
#include "checkpoint/quantization/packed_parts.hpp"
#include "checkpoint/recognize/folder.hpp"
#include "core/name_list.hpp"
#include "core/text.hpp"
#include "llamacpp/model_faults.hpp"

namespace ballast {
namespace {

std::string message_of(const Error& error) {
  const bool says_so = error.code() == Errc::not_found || error.message().find("cannot be opened") != std::string::npos;
  return (says_so ? "" : "cannot be opened: ") + error.message();
}

void add_failure(const Error& error, FindingCollector& out) {
  if (error.code() == Errc::cancelled) throw error;
  out.add_failure(error.code() == Errc::not_found ? "missing" : "malformed", error.where(), message_of(error));
}

void add_globals(const ScanReport& report, FindingCollector& out) {
  std::set<std::pair<std::string, std::string>> seen;  // a name is said once for a file
  for (const ScannedGlobal& global : report.globals) {
    if (global.verdict == Verdict::known) continue;
    const std::string called = global.module + "." + global.name;
    if (!seen.emplace(global.file, called).second) continue;
    const bool is_dangerous = global.verdict == Verdict::dangerous;
    out.add(is_dangerous ? "unsafe" : "unknown-code", global.file, {},
            fmt::format("{} is {}{}", called, global.use, global.why.empty() ? "" : fmt::format(": {}", global.why)));
  }
}

void add_findings(const ScanReport& report, FindingCollector& out) {
  constexpr std::string_view kNotLookedInto = ": not looked into";
  for (const ScanFinding& finding : report.findings) {
    std::string_view what = finding.what;
    if (what.ends_with(kNotLookedInto)) what.remove_suffix(kNotLookedInto.size());
    const bool is_dangerous = finding.verdict == Verdict::dangerous;
    if (is_dangerous || !out.says(finding.where, what))
      out.add(is_dangerous ? "unsafe" : "unknown-code", finding.where, {}, finding.what);
  }
}

// Comes last: a scan complains of damage as well, which the reader of the file has said by then.
void look_for_code(const CheckedTarget& checked, const CheckOptions& options, FindingCollector& out) {
  try {
    const ScanReport report = scan(checked.target, {options.open, options.policy.trusted});
    add_globals(report, out);
    add_findings(report, out);
  } catch (const Error& error) {
    if (error.code() == Errc::cancelled) throw;
    if (checked.passes()) add_failure(error, out);
  }
}

// Bytes are read only where a file has checksums of them: the values are read in any case.
void look_at_structure(const std::string& target, const Checkpoint& checkpoint, const CheckOptions& options,
                       FindingCollector& out) {
  VerifyOptions how{.open = options.open, .progress = options.progress};
  constexpr Format kWithSums[] = {Format::torch_zip, Format::torchscript, Format::npz, Format::archive};
  how.read_data = std::ranges::count(kWithSums, checkpoint.format) != 0;
  for (const Finding& finding : verify(target, how).findings) out.add("malformed", finding.where, {}, finding.what);
}

void add_skipped(const Checkpoint& checkpoint, const ProblemReport& report, FindingCollector& out) {
  struct Some {
    std::string first;
    std::uint64_t count = 0;
  };
  std::map<std::string, Some> by_reason;
  const PackedParts packed(checkpoint);
  for (const ProblemReport::Skipped& skipped : report.skipped) {
    const Tensor& tensor = checkpoint.at(skipped.tensor);
    if (tensor.numel() == 0 || packed.contain(tensor)) continue;  // there is nothing to look for
    Some& some = by_reason[skipped.why];
    if (some.count++ == 0) some.first = skipped.tensor;
  }
  for (const auto& [why, some] : by_reason)
    out.add("not-checked", {}, some.first,
            fmt::format("was not looked at for NaN and infinities{}: {}",
                        some.count == 1   ? ""
                        : some.count == 2 ? ", nor was another one"
                                          : fmt::format(", nor were {} others", some.count - 1),
                        why));
}

void look_at_values(const Checkpoint& checkpoint, const CheckOptions& options, FindingCollector& out) {
  const ProblemReport report = find_problems(
      checkpoint, {.threads = options.threads, .progress = options.progress, .limits = options.open.limits});
  for (const Problem& problem : report.problems) out.add(name(problem.kind), {}, problem.tensor, problem.text);
  add_skipped(checkpoint, report, out);
}

void look_at_configuration(const Checkpoint& checkpoint, const CheckOptions& options, FindingCollector& out) {
  using Kind = llamacpp::ModelFault::Kind;
  for (const llamacpp::ModelFault& fault : llamacpp::find_model_faults(checkpoint, options.open)) {
    // What cannot be read was said of the folder.
    if (fault.kind == Kind::unreadable && out.says("config.json", "cannot be read")) continue;
    const std::string_view rule = fault.kind == Kind::missing         ? "missing"
                                  : fault.kind == Kind::contradiction ? "contradiction"
                                  : fault.kind == Kind::left_over     ? "left-over"
                                  : fault.kind == Kind::not_compared  ? "not-checked"
                                                                      : "configuration";
    out.add(rule, {}, fault.tensor, fault.what);
  }
}

// The file in which PEFT keeps an adapter, beside its configuration.
bool is_file_of_adapter(const Checkpoint& checkpoint) {
  if (checkpoint.files.empty()) return false;
  const std::string_view path = checkpoint.files.front().path;
  return path.substr(path.rfind('/') + 1).starts_with("adapter_model.");
}

void look_at_adapter(const Checkpoint& checkpoint, const CheckOptions& options, FindingCollector& out) {
  if (!is_file_of_adapter(checkpoint)) return;
  const Files& files = *options.open.files;
  const std::string config = files.beside(checkpoint.files.front().path, "adapter_config.json");
  if (!files.exists(config)) return out.add("not-checked", {}, {}, "there is no adapter_config.json to compare with");
  try {
    AdapterLoadOptions how;
    how.open = options.open;
    for (const AdapterProblem& problem : find_problems(load_adapter(checkpoint.target, how)))
      out.add(problem.is_harmless ? "configuration" : "contradiction", {}, {}, problem.text);
  } catch (const Error& error) {
    if (error.code() == Errc::cancelled) throw;
    out.add("contradiction", error.where(), {}, error.message());
  }
}

// Folders beside the weights may hold other checkpoints, such as those of a training.
void add_folders_beside(const Checkpoint& checkpoint, const CheckOptions& options, FindingCollector& out) {
  const Files& files = *options.open.files;
  auto names = files.list(checkpoint.target);
  if (!names || !has_checkpoint(*names)) return;
  std::ranges::sort(*names, natural_less);
  NameList found;
  for (const std::string& name : *names) {
    const auto inner = files.list(files.inside(checkpoint.target, name));
    if (inner && has_checkpoint(*inner)) found.add(name);
  }
  if (!found.empty())
    out.add("not-checked", {}, {}, "folders with checkpoints of their own were only scanned: " + found.text());
}

// What opening noted, as far as verify() did not find it.
void add_notes(const Checkpoint& checkpoint, const CheckOptions& options, FindingCollector& out) {
  if (const auto pipeline = find_pipeline(checkpoint.target, options.open)) {
    for (const Note& note : pipeline->notes) out.add("missing", note.where, {}, note.text);
  }
  for (const Note& note : checkpoint.notes) {
    if (note.kind == Note::Kind::oddity && !out.says(note.where, note.text))
      out.add("not-checked", note.where, {}, note.text);
  }
}

void put_failures_first(CheckedTarget& checked) {
  std::ranges::stable_sort(checked.findings, std::ranges::greater(), &CheckFinding::level);
}

}  // namespace

CheckedTarget check_checkpoint(const std::string& target, const CheckOptions& options, bool scans) {
  CheckedTarget checked{.target = target, .findings = {}};
  FindingCollector out(checked.target, options.policy, checked.findings);
  try {
    const Checkpoint checkpoint = open(target, options.open);
    checked.is_opened = true;
    checked.tensors = checkpoint.size();
    for (const CheckpointFile& file : checkpoint.files) checked.bytes += file.bytes;
    if (checkpoint.size() == 0) out.add("missing", {}, {}, "there are no tensors");
    look_at_structure(target, checkpoint, options, out);
    add_notes(checkpoint, options, out);
    add_folders_beside(checkpoint, options, out);
    look_at_values(checkpoint, options, out);
    look_at_folder(checkpoint, options, out);
    look_at_configuration(checkpoint, options, out);
    look_at_adapter(checkpoint, options, out);
    look_at_tensors(checkpoint, options, out);
  } catch (const Error& error) {
    add_failure(error, out);
  }
  if (scans) look_for_code(checked, options, out);
  put_failures_first(checked);
  return checked;
}

CheckedTarget check_folder(const std::string& target, std::uint64_t checkpoints, const CheckOptions& options) {
  CheckedTarget checked{.target = target, .checkpoints = checkpoints, .findings = {}};
  FindingCollector out(checked.target, options.policy, checked.findings);
  look_for_code(checked, options, out);
  put_failures_first(checked);
  return checked;
}

CheckedTarget unchecked(const std::string& target, const Error& error, const CheckOptions& options) {
  CheckedTarget checked{.target = target, .findings = {}};
  FindingCollector out(checked.target, options.policy, checked.findings);
  add_failure(error, out);
  return checked;
}

}  // namespace ballast
