// scan: shows what the pickles in files would do to a program that loads them, and what is wrong with the files around
// them.
#include <ballast/scan.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <tuple>

#include <fmt/format.h>
#include <ballast/error.hpp>
#include <ballast/text.hpp>

#include "../json_writer.hpp"
#include "../options.hpp"
#include "../table.hpp"
#include "../wrap.hpp"
#include "scan_documents.hpp"
#include "verbs.hpp"

namespace ballast::cli {
namespace {

struct Arguments {
  std::vector<std::string> targets;
  std::vector<std::string> trusted, policies;
  bool sarif = false;
  bool allowlist = false;
};

std::string_view word_for(Safe safe) { return safe == true ? "safe" : safe == false ? "dangerous" : "unknown"; }

Color color_of(std::string_view verdict) {
  return verdict == "dangerous" ? Color::red : verdict == "safe" || verdict == "known" ? Color::green : Color::yellow;
}

// A global that is named a thousand times is one line, at its first place; dangerous globals come first.
struct Mention {
  const ScannedGlobal* first;
  std::uint64_t times = 0;
};

std::vector<Mention> mentions_of(const ScanReport& report, const std::string& file) {
  std::map<std::tuple<std::string_view, std::string_view, std::string_view, Verdict>, std::size_t> places;
  std::vector<Mention> mentions;
  for (const ScannedGlobal& global : report.globals) {
    if (global.file != file) continue;
    const auto [place, is_new] =
        places.try_emplace({global.member, global.module, global.name, global.verdict}, mentions.size());
    if (is_new) mentions.push_back({&global});
    ++mentions[place->second].times;
  }
  std::stable_sort(mentions.begin(), mentions.end(),
                   [](const Mention& a, const Mention& b) { return a.first->verdict > b.first->verdict; });
  return mentions;
}

std::string place_of(const ScannedGlobal& global) {
  if (global.member.empty()) return fmt::format("byte {}", global.offset);
  return fmt::format("{} byte {}", escape_for_terminal(global.member), global.offset);
}

// "called: runs programs or shell commands (denylist)"
std::string reason_of(const ScannedGlobal& global) {
  const std::string why = global.why.empty() ? "" : fmt::format(": {}", global.why);
  return fmt::format("{}{} ({})", global.use, why, global.rule);
}

// "2 dangerous names, 1 finding": the reasons for a file's verdict.
std::string summary_of(const ScannedFile& file) {
  std::vector<std::string> parts;
  if (file.dangerous != 0) parts.push_back(plural(file.dangerous, "dangerous name"));
  if (file.unknown != 0) parts.push_back(fmt::format("{} that Ballast does not know", plural(file.unknown, "name")));
  if (file.findings != 0) parts.push_back(plural(file.findings, "finding"));
  if (!parts.empty()) return fmt::format("{}", fmt::join(parts, ", "));
  if (file.pickles == 0) return "no pickles";
  const std::string names = file.known == 0 ? "no names" : plural(file.known, "name") + " known";
  return fmt::format("{}, in {}", names, plural(file.pickles, "pickle"));
}

void write_details(Session& session, const ScanReport& report, const ScannedFile& file) {
  const bool is_piped = !session.screen.interactive;
  std::vector<Table::Column> columns = {{}, {.color = Color::cyan, .narrowest = 24}, {}, {.wraps = !is_piped}};
  if (is_piped) columns.push_back({});
  Table table(session.out, session.screen, columns, "  ");
  for (const Mention& mention : mentions_of(report, file.file)) {
    const ScannedGlobal& global = *mention.first;
    if (global.verdict == Verdict::known && !session.verbose) continue;
    const std::string verdict(name(global.verdict));
    std::vector<std::string> row = {
        session.screen.paint(color_of(verdict), verdict), escape_for_terminal(global.module + "." + global.name),
        mention.times == 1 ? "" : fmt::format("{}{}", session.screen.times(), mention.times), place_of(global)};
    is_piped ? row.push_back(reason_of(global)) : void(row.back() += ", " + reason_of(global));
    table.row(row);
  }
  table.finish();
  for (const ScanFinding& finding : report.findings) {
    if (finding.file != file.file) continue;
    const std::string at = finding.offset ? fmt::format(" (byte {})", *finding.offset) : "";
    const std::string where = finding.where == file.file ? "" : escape_for_terminal(finding.where) + ": ";
    const std::string verdict(name(finding.verdict));
    session.out.line(labelled(session.screen, fmt::format("  {}  ", session.screen.paint(color_of(verdict), verdict)),
                              where + escape_for_terminal(finding.what) + at));
  }
}

void write_text(Session& session, const ScanReport& report) {
  std::uint64_t counts[3] = {};
  for (const ScannedFile& file : report.files) {
    ++counts[file.safe == true ? 0 : file.safe == false ? 2 : 1];
    const std::string_view word = word_for(file.safe);
    // The word has a column of its own: the longest word has nine letters.
    const std::string label = session.screen.paint(color_of(word), word) + std::string(9 - word.size(), ' ') + "  ";
    session.out.line(labelled(session.screen, label, escape_for_terminal(file.file) + ": " + summary_of(file)));
    write_details(session, report, file);
  }
  if (session.quiet) return;
  session.out.flush();  // before the summary on stderr
  session.say(fmt::format("{}: {} safe, {} unknown, {} dangerous. Nothing was run.",
                          plural(report.files.size(), "file"), counts[0], counts[1], counts[2]));
}

// "called with literals: a number or a range of numbers"
std::string use_of(const AllowedUse& row) {
  return fmt::format("{}{}: {}", row.uses, row.given.empty() ? "" : " with " + row.given, row.why);
}

void write_allowlist(Session& session) {
  const bool is_piped = !session.screen.interactive;
  std::vector<Table::Column> columns = {{.color = Color::cyan}, {.wraps = !is_piped}};
  if (is_piped) columns.resize(4);
  Table table(session.out, session.screen, columns);
  if (is_piped) table.header({"name", "known when it is", "with", "why that is harmless"});
  for (const AllowedUse& row : scan_allowlist())
    is_piped ? table.row({row.name, row.uses, row.given, row.why}) : table.row({row.name, use_of(row)});
  table.finish();
}

// A policy has one pattern a line; the text after a # is a comment.
void read_policy(const std::string& path, std::vector<std::string>& trusted) {
  std::ifstream file(path);
  if (!file) throw Error(Errc::not_found, "cannot open the policy").in(path);
  if (std::filesystem::is_directory(path))
    throw Error(Errc::invalid_argument, "the policy is a folder, not a file").in(path);
  for (std::string line; std::getline(file, line);) {
    line.resize(std::min(line.find('#'), line.size()));
    const auto first = line.find_first_not_of(" \t\r");
    if (first == std::string::npos) continue;
    trusted.push_back(line.substr(first, line.find_last_not_of(" \t\r") + 1 - first));
  }
}

// An archive without anything to scan is safe. But if it is not a checkpoint either, the verb says so, with the same
// exit code as every other verb.
void refuse_what_is_no_checkpoint(const Session& session, const std::string& target) {
  try {
    static_cast<void>(open(target, session.open_options()));
  } catch (const Error& error) {
    if (error.code() == Errc::unsupported && error.where().starts_with(target)) throw;
  }
}

ScanReport scan_one(const Session& session, const std::string& target, const ScanOptions& options) {
  if (target == "-") return scan_bytes(read_standard_input(), "<stdin>", options);
  ScanReport report = scan(target, options);
  const bool has_found_nothing =
      report.files.size() == 1 && report.files[0].pickles == 0 && report.files[0].findings == 0;
  if (has_found_nothing && !std::filesystem::is_directory(target)) refuse_what_is_no_checkpoint(session, target);
  return report;
}

int run_scan(Session& session, const Arguments& arguments) {
  if (arguments.allowlist) {
    write_allowlist(session);
    return 0;
  }
  if (arguments.targets.empty()) throw Error(Errc::invalid_argument, "scan what?").hint("name a file or a folder");
  if (arguments.sarif && session.json)
    throw Error(Errc::invalid_argument, "--sarif and --json are two documents").hint("leave one of the two out");
  ScanOptions options{session.open_options(), arguments.trusted};
  for (const std::string& policy : arguments.policies) read_policy(policy, options.trusted);

  std::vector<std::string> targets;
  for (const std::string& target : arguments.targets) targets.push_back(session.target_in(target));
  if (targets.size() > 1 && std::ranges::count(targets, "-") != 0)
    throw Error(Errc::invalid_argument, "standard input is scanned by itself").hint("scan the other targets apart");
  const ScanReport report = targets.size() == 1 ? scan_one(session, targets[0], options) : scan_all(targets, options);
  if (arguments.sarif) {
    write_scan_sarif(session.out, report);
  } else if (session.json) {
    write_scan_json(session.out, targets, report);
  } else {
    write_text(session, report);
  }
  return report.is_safe() ? 0 : info(Errc::mismatch).exit_code;
}

}  // namespace

void add_scan(Command& verb, Session& session) {
  auto arguments = std::make_shared<Arguments>();
  verb.positional("TARGET", &arguments->targets,
                  "files, folders (every file of which is looked at, in their folders too), or - for standard input");
  verb.option("--trust", "GLOB", &arguments->trusted,
              "names that are known for this run, as in 'ultralytics.*'; dangerous ones stay dangerous; repeatable");
  verb.option("--policy", "FILE", &arguments->policies, "the same, one pattern a line; # begins a comment");
  verb.flag("--sarif", &arguments->sarif, "a SARIF 2.1.0 document, for programs that show findings");
  verb.flag("--allowlist", &arguments->allowlist, "show what is known, for which uses, and why; scan nothing");
  add_json_option(verb, session);
  verb.examples =
      "  ballast scan pytorch_model.bin\n  ballast scan downloads/ --trust 'ultralytics.*'\n"
      "  ballast scan downloads/ --json | jq '.files[] | select(.safe != true)'\n";
  verb.run = [arguments, &session] { return run_scan(session, *arguments); };
}

}  // namespace ballast::cli
