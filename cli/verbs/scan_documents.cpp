#include "scan_documents.hpp"

#include <filesystem>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "../json_writer.hpp"
#include "../sarif.hpp"

namespace ballast::cli {
namespace {

using Layout = JsonWriter::Layout;

void write_safe(JsonWriter& json, Safe safe) { safe ? json.field("safe", *safe) : json.field("safe", nullptr); }

void write_global(JsonWriter& json, const ScannedGlobal& global, bool has_files) {
  json.begin_object();
  json.field("module", global.module);
  json.field("name", global.name);
  json.field("offset", global.offset);
  json.field("member", global.member);
  if (has_files) json.field("file", global.file);
  json.field("verdict", name(global.verdict));
  json.field("use", global.use);
  json.field("rule", global.rule);
  if (!global.why.empty()) json.field("why", global.why);
  json.end();
}

void write_finding(JsonWriter& json, const ScanFinding& finding, bool has_files) {
  json.begin_object();
  if (has_files) json.field("file", finding.file);
  json.field("where", finding.where);
  finding.offset ? json.field("offset", *finding.offset) : json.field("offset", nullptr);
  json.field("what", finding.what);
  json.field("verdict", name(finding.verdict));
  json.end();
}

void write_file(JsonWriter& json, const ScannedFile& file) {
  json.begin_object();
  json.field("file", file.file);
  write_safe(json, file.safe);
  json.field("pickles", file.pickles);
  json.field("known", file.known);
  json.field("unknown", file.unknown);
  json.field("dangerous", file.dangerous);
  json.field("findings", file.findings);
  json.end();
}

std::vector<SarifResult> results_of(const ScanReport& report) {
  const auto level = [](Verdict verdict) { return verdict == Verdict::dangerous ? "error" : "warning"; };
  std::vector<SarifResult> results;
  for (const ScannedGlobal& global : report.globals) {
    if (global.verdict == Verdict::known) continue;
    const std::string member = global.member.empty() ? "" : fmt::format(" in {}", global.member);
    // The offset counts inside the member; it is an offset in the file only if there is no member.
    const auto offset = global.member.empty() ? std::optional(global.offset) : std::nullopt;
    results.push_back(
        {global.verdict == Verdict::dangerous ? "dangerous-name" : "unknown-name", level(global.verdict),
         fmt::format("{}.{} is {}{}: {} ({})", global.module, global.name, global.use, member, global.why, global.rule),
         global.file, offset});
  }
  for (const ScanFinding& finding : report.findings) {
    const auto offset = finding.where == finding.file ? finding.offset : std::nullopt;
    results.push_back({"finding", level(finding.verdict), finding.what, finding.file, offset});
  }
  return results;
}

}  // namespace

void write_scan_json(Output& out, const std::vector<std::string>& targets, const ScanReport& report) {
  std::error_code error;
  const bool has_files = targets.size() != 1 || std::filesystem::is_directory(targets[0], error);
  JsonWriter json(out, "ballast.scan/2");
  targets.size() == 1 ? json.field("target", targets[0]) : json.array_field("targets", targets);
  write_safe(json, report.safe());
  json.key("globals");
  json.begin_array(Layout::lines);
  for (const ScannedGlobal& global : report.globals) write_global(json, global, has_files);
  json.end();
  json.key("findings");
  json.begin_array(Layout::lines);
  for (const ScanFinding& finding : report.findings) write_finding(json, finding, has_files);
  json.end();
  if (has_files) {
    json.key("files");
    json.begin_array(Layout::lines);
    for (const ScannedFile& file : report.files) write_file(json, file);
    json.end();
  }
  std::uint64_t pickles = 0;
  for (const ScannedFile& file : report.files) pickles += file.pickles;
  json.field("pickles", pickles);
  json.finish();
}

void write_scan_sarif(Output& out, const ScanReport& report) {
  const SarifRule rules[] = {
      {"dangerous-name", "a pickle uses what runs code, writes files or reaches the network"},
      {"unknown-name", "a pickle uses what Ballast does not know"},
      {"finding", "the file is not as it should be, or part of it was not looked into"},
  };
  write_sarif(out, "ballast scan", rules, results_of(report));
}

}  // namespace ballast::cli
