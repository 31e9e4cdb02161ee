// verify: checks whether a checkpoint is whole, and whether it is still the same.
#include <ballast/verify.hpp>

#include <algorithm>
#include <fstream>
#include <map>
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <ballast/error.hpp>
#include <ballast/hash.hpp>
#include <ballast/text.hpp>

#include "../json_writer.hpp"
#include "../options.hpp"
#include "../wrap.hpp"
#include "verbs.hpp"

namespace ballast::cli {
namespace {

struct Arguments {
  std::string target;
  std::string manifest;
  bool skip_data = false;
};

// `ballast convert --manifest` writes JSON; the output of `ballast hash` begins with a digest.
bool is_json(const std::string& path) {
  std::ifstream file(path);
  char first = 0;
  return file >> first && first == '{';
}

// The output of `ballast hash`: "HEX  NAME" with escaped names, and a last line for the whole checkpoint. A name that
// does not fit a terminal stands in the line below. Different names can print alike, so a name may be there more than
// once.
using Manifest = std::multimap<std::string, std::string, std::less<>>;

constexpr std::size_t kHexDigits = 64;
constexpr std::string_view kNoData = "no data";

std::optional<std::pair<std::string, std::string>> manifest_entry(const std::string& line) {
  const bool is_entry = line.size() >= kHexDigits + 2 && line.compare(kHexDigits, 2, "  ") == 0 &&
                        line.find_first_not_of("0123456789abcdef") == kHexDigits;
  if (!is_entry) return std::nullopt;
  return std::pair(line.substr(kHexDigits + 2), line.substr(0, kHexDigits));
}

// A manifest may be copied from a terminal, which shows counts with spaces between their groups of digits.
bool is_last_line(std::string_view line, std::size_t tensors) {
  return line.ends_with(fmt::format("  (all {})", Terminal().plural(tensors, "tensor"))) ||
         line.ends_with(fmt::format("  (all {})", plural(tensors, "tensor")));
}

// An entry as `hash` prints it to a pipe, and the number of the line where it begins.
struct ManifestLine {
  std::string text;
  std::size_t number = 0;
};

std::vector<ManifestLine> manifest_lines(std::istream& file) {
  std::vector<ManifestLine> lines;
  std::string text;
  for (std::size_t number = 1; std::getline(file, text); ++number) {
    const bool is_name = !lines.empty() && text.starts_with("  ") &&
                         (lines.back().text.size() == kHexDigits || lines.back().text == kNoData);
    if (is_name)
      lines.back().text += text;
    else
      lines.push_back({text, number});
  }
  return lines;
}

Manifest read_manifest(const std::string& path) {
  std::ifstream file(path);
  if (!file)
    throw Error(Errc::not_found, "cannot open the manifest")
        .in(path)
        .hint(Advice::mention(Remedy::hash_file) + " makes one");
  Manifest manifest;
  const std::vector<ManifestLine> lines = manifest_lines(file);
  for (const auto& [text, number] : lines) {
    const bool is_last = number == lines.back().number;
    if (text.starts_with(kNoData) || (is_last && is_last_line(text, lines.size() - 1))) continue;
    const auto entry = manifest_entry(text);
    if (!entry) {
      throw Error(Errc::malformed, fmt::format("line {} is no digest and name", number))
          .in(path)
          .hint("a manifest is what " + Advice::mention(Remedy::hash_file) + " makes");
    }
    manifest.insert(*entry);
  }
  return manifest;
}

void compare(const Session& session, const Arguments& arguments, VerifyReport& report) {
  Manifest expected = read_manifest(arguments.manifest);
  const Checkpoint checkpoint = open_target(session, arguments.target);
  auto bar = session.progress_bar();
  const HashReport hashes =
      hash(checkpoint,
           {.threads = session.threads, .progress = bar.callback(), .limits = session.limits, .team = session.team});
  const auto found = [&](std::string what) { report.findings.push_back({checkpoint.target, std::move(what)}); };

  for (const auto& [name, sha256] : hashes.tensors) {
    if (!sha256) continue;
    const auto [first, last] = expected.equal_range(escape_for_terminal(name));
    if (first == last) {
      found(fmt::format("tensor \"{}\" is not in the manifest", name));
      continue;
    }
    const auto entry =
        std::find_if(first, last, [&sha = *sha256](const auto& candidate) { return candidate.second == sha; });
    if (entry == last) found(fmt::format("tensor \"{}\" is not what the manifest says", name));
    expected.erase(entry == last ? first : entry);
  }
  for (const auto& [name, sha256] : expected) found(fmt::format("tensor \"{}\" of the manifest is missing", name));
}

void write_json(Session& session, const Arguments& arguments, const VerifyReport& report) {
  JsonWriter json(session.out, "ballast.verify/1");
  json.field("target", arguments.target);
  json.field("ok", report.ok());
  json.key("findings");
  json.begin_array(JsonWriter::Layout::lines);
  for (const Finding& finding : report.findings) {
    json.begin_object();
    json.field("where", finding.where);
    json.field("what", finding.what);
    json.end();
  }
  json.end();
  json.field("tensors", report.tensors);
  json.field("bytes_read", report.bytes_read);
  json.finish();
}

void write_text(Session& session, const Arguments& arguments, const VerifyReport& report) {
  for (const Finding& finding : report.findings) {
    const std::string& where = finding.where.empty() ? arguments.target : finding.where;
    const std::string label = session.screen.paint(Color::red, escape_for_terminal(where)) + ": ";
    session.out.line(labelled(session.screen, label, escape_for_terminal(finding.what)));
  }
  if (session.quiet) return;
  session.out.flush();  // before the summary on stderr
  if (!report.ok()) return session.say(plural(report.findings.size(), "finding"));
  session.out.line(fmt::format("{} {}, {} read", session.screen.paint(Color::green, "ok:"),
                               session.screen.plural(report.tensors, "tensor"),
                               session.screen.bytes_in_words(report.bytes_read)));
}

int run_verify(Session& session, const Arguments& arguments) {
  if (arguments.target == "-") {
    throw Error(Errc::invalid_argument, "verify checks files, not standard input")
        .hint("save it to a file first, or use ballast info -, which checks the header");
  }
  const bool is_written_manifest = !arguments.manifest.empty() && is_json(arguments.manifest);
  VerifyReport report;
  {
    auto bar = session.progress_bar();
    report = verify(session.target_in(arguments.target), {.open = session.open_options(),
                                                          .read_data = !arguments.skip_data,
                                                          .manifest = is_written_manifest ? arguments.manifest : "",
                                                          .progress = bar.callback(),
                                                          .team = session.team});
  }
  if (report.ok() && !arguments.manifest.empty() && !is_written_manifest) compare(session, arguments, report);
  session.json ? write_json(session, arguments, report) : write_text(session, arguments, report);
  return report.ok() ? 0 : info(Errc::mismatch).exit_code;
}

}  // namespace

void add_verify(Command& verb, Session& session) {
  auto arguments = std::make_shared<Arguments>();
  verb.positional("TARGET", &arguments->target, "a file, a folder or an …index.json");
  verb.option("--manifest", "FILE", &arguments->manifest,
              "compare with what `ballast hash` printed or `ballast convert --manifest` wrote earlier");
  verb.flag("--no-data", &arguments->skip_data, "check the structure, and do not read the tensors");
  add_json_option(verb, session);
  verb.examples =
      "  ballast verify model/\n  ballast hash model/ > model.sha256 && ballast verify copy/ --manifest "
      "model.sha256\n";
  verb.run = [arguments, &session] { return run_verify(session, *arguments); };
}

}  // namespace ballast::cli
