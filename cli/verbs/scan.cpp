// scan: what the pickles in a file would import, and what is wrong with the file around them.
#include <ballast/scan.hpp>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <tuple>

#include <fmt/format.h>
#include <ballast/error.hpp>
#include <ballast/text.hpp>

#include "../json_writer.hpp"
#include "../options.hpp"
#include "../table.hpp"
#include "verbs.hpp"

namespace ballast::cli {
namespace {

using Layout = JsonWriter::Layout;

void write_json(Session& session, const std::string& target, const ScanReport& report) {
  JsonWriter json(session.out, "ballast.scan/1");
  json.field("target", target);
  json.field("safe", report.is_safe());
  json.key("globals");
  json.begin_array(Layout::lines);
  for (const ScannedGlobal& global : report.globals) {
    json.begin_object();
    json.field("module", global.module);
    json.field("name", global.name);
    json.field("offset", global.offset);
    json.field("member", global.member);
    if (!global.file.empty()) json.field("file", global.file);
    json.field("verdict", name(global.verdict));
    if (!global.why.empty()) json.field("why", global.why);
    json.end();
  }
  json.end();
  json.key("findings");
  json.begin_array(Layout::lines);
  for (const ScanFinding& finding : report.findings) {
    json.begin_object();
    json.field("where", finding.where);
    finding.offset ? json.field("offset", *finding.offset) : json.field("offset", nullptr);
    json.field("what", finding.what);
    json.end();
  }
  json.end();
  json.field("files", report.files);
  json.field("pickles", report.pickles);
  json.finish();
}

// A global that is named a thousand times is one line, at its first place; the dangerous ones come first.
struct Mention {
  const ScannedGlobal* first;
  std::uint64_t times = 0;
};

std::vector<Mention> mentions_of(const ScanReport& report) {
  std::map<std::tuple<std::string_view, std::string_view, std::string_view, std::string_view>, std::size_t> places;
  std::vector<Mention> mentions;
  for (const ScannedGlobal& global : report.globals) {
    const auto [place, is_new] =
        places.try_emplace({global.file, global.member, global.module, global.name}, mentions.size());
    if (is_new) mentions.push_back({&global});
    ++mentions[place->second].times;
  }
  std::stable_sort(mentions.begin(), mentions.end(),
                   [](const Mention& a, const Mention& b) { return a.first->verdict > b.first->verdict; });
  return mentions;
}

// "data.pkl byte 7", of a folder "models/a.pt!/data.pkl byte 7".
std::string place_of(const ScannedGlobal& global) {
  std::string where = global.file;
  if (!where.empty() && !global.member.empty()) where += "!/";
  where += global.member;
  return where.empty() ? fmt::format("byte {}", global.offset)
                       : fmt::format("{} byte {}", escape_for_terminal(where), global.offset);
}

void write_text(Session& session, const ScanReport& report) {
  const auto mentions = mentions_of(report);
  Table table(session.out, session.screen, {{}, {.color = Color::cyan}, {}, {.color = Color::dim}, {}});
  for (const Mention& mention : mentions) {
    const ScannedGlobal& global = *mention.first;
    const std::string verdict(name(global.verdict));
    table.row({global.verdict == Verdict::dangerous ? session.screen.paint(Color::red, verdict) : verdict,
               escape_for_terminal(global.module + "." + global.name),
               mention.times == 1 ? "" : fmt::format("×{}", mention.times), place_of(global), std::string(global.why)});
  }
  table.finish();
  for (const ScanFinding& finding : report.findings) {
    const std::string at = finding.offset ? fmt::format(" (byte {})", *finding.offset) : "";
    session.out.line(fmt::format("{}: {}{}", session.screen.paint(Color::yellow, escape_for_terminal(finding.where)),
                                 escape_for_terminal(finding.what), at));
  }
  if (session.quiet) return;
  session.out.flush();  // before what is said about it
  const auto dangerous = static_cast<std::uint64_t>(std::count_if(
      mentions.begin(), mentions.end(), [](const Mention& m) { return m.first->verdict == Verdict::dangerous; }));
  if (dangerous != 0) {
    return session.say(fmt::format("{} to import something dangerous; {} in all. Nothing was run.",
                                   dangerous == 1 ? "1 attempt" : fmt::format("{} attempts", dangerous),
                                   plural(mentions.size(), "global")));
  }
  session.say(fmt::format("nothing dangerous in {} of {}{}", plural(mentions.size(), "global"),
                          plural(report.pickles, "pickle"),
                          report.findings.empty() ? "" : ", but the file is not as it should be"));
}

// An archive in which there is nothing to look at is safe; if it is not a checkpoint either, that is the answer, and
// the exit code is that of every other verb.
void refuse_what_is_no_checkpoint(const Session& session, const std::string& target) {
  try {
    static_cast<void>(open(target, session.open_options()));
  } catch (const Error& error) {
    if (error.code() == Errc::unsupported && error.where().starts_with(target)) throw;
  }
}

int run_scan(Session& session, const std::string& target) {
  if (target == "-") {
    throw Error(Errc::invalid_argument, "scan looks at files, not at standard input").hint("save it to a file first");
  }
  const ScanReport report = scan(target, session.open_options());
  const bool has_found_nothing = report.pickles == 0 && report.findings.empty();
  if (has_found_nothing && !std::filesystem::is_directory(target)) refuse_what_is_no_checkpoint(session, target);
  session.json ? write_json(session, target, report) : write_text(session, report);
  return report.is_safe() && report.findings.empty() ? 0 : info(Errc::mismatch).exit_code;
}

}  // namespace

void add_scan(Command& verb, Session& session) {
  auto target = std::make_shared<std::string>();
  verb.positional("TARGET", target.get(), "a file, or a folder, every file of which is looked at, in its folders too");
  add_json_option(verb, session);
  verb.examples = "  ballast scan pytorch_model.bin\n  ballast scan downloads/ --json | jq '.globals[].module'\n";
  verb.run = [target, &session] { return run_scan(session, *target); };
}

}  // namespace ballast::cli
