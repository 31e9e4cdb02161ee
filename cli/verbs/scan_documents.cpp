#include "scan_documents.hpp"

#include <filesystem>
#include <optional>

#include <fmt/format.h>

#include "../json_writer.hpp"

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

struct Result {
  std::string_view rule;
  Verdict verdict;
  std::string message;
  const std::string* file;
  std::optional<std::uint64_t> offset;
};

void write_result(JsonWriter& json, const Result& result) {
  json.begin_object();
  json.field("ruleId", result.rule);
  json.field("level", result.verdict == Verdict::dangerous ? "error" : "warning");
  json.key("message");
  json.begin_object();
  json.field("text", result.message);
  json.end();
  json.key("locations");
  json.begin_array();
  json.begin_object();
  json.key("physicalLocation");
  json.begin_object();
  json.key("artifactLocation");
  json.begin_object();
  json.field("uri", *result.file);
  json.end();
  if (result.offset) {
    json.key("region");
    json.begin_object();
    json.field("byteOffset", *result.offset);
    json.end();
  }
  json.end();
  json.end();
  json.end();
  json.end();
}

void write_results(JsonWriter& json, const ScanReport& report) {
  json.key("results");
  json.begin_array(Layout::lines);
  for (const ScannedGlobal& global : report.globals) {
    if (global.verdict == Verdict::known) continue;
    const std::string member = global.member.empty() ? "" : fmt::format(" in {}", global.member);
    // The offset counts inside the member; it is an offset in the file only if there is no member.
    const auto offset = global.member.empty() ? std::optional(global.offset) : std::nullopt;
    write_result(json, {global.verdict == Verdict::dangerous ? "dangerous-name" : "unknown-name", global.verdict,
                        fmt::format("{}.{} is {}{}: {} ({})", global.module, global.name, global.use, member,
                                    global.why, global.rule),
                        &global.file, offset});
  }
  for (const ScanFinding& finding : report.findings) {
    const auto offset = finding.where == finding.file ? finding.offset : std::nullopt;
    write_result(json, {"finding", finding.verdict, finding.what, &finding.file, offset});
  }
  json.end();
}

void write_rule(JsonWriter& json, std::string_view id, std::string_view text) {
  json.begin_object();
  json.field("id", id);
  json.key("shortDescription");
  json.begin_object();
  json.field("text", text);
  json.end();
  json.end();
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
  JsonWriter json(out);
  json.begin_object(Layout::lines);
  json.field("$schema", "https://json.schemastore.org/sarif-2.1.0.json");
  json.field("version", "2.1.0");
  json.key("runs");
  json.begin_array();
  json.begin_object(Layout::lines);
  json.key("tool");
  json.begin_object();
  json.key("driver");
  json.begin_object();
  json.field("name", "ballast scan");
  json.key("rules");
  json.begin_array();
  write_rule(json, "dangerous-name", "a pickle uses what runs code, writes files or reaches the network");
  write_rule(json, "unknown-name", "a pickle uses what Ballast does not know");
  write_rule(json, "finding", "the file is not as it should be, or part of it was not looked into");
  json.end();
  json.end();
  json.end();
  write_results(json, report);
  json.finish();
}

}  // namespace ballast::cli
