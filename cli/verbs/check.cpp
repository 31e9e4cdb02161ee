// check: whether files and folders are fit to ship, for people and for CI.
#include <ballast/check.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <vector>

#include <fmt/format.h>
#include <ballast/error.hpp>
#include <ballast/text.hpp>

#include "../json_writer.hpp"
#include "../options.hpp"
#include "../sarif.hpp"
#include "../table.hpp"
#include "../wrap.hpp"
#include "verbs.hpp"

namespace ballast::cli {
namespace {

struct CheckArguments {
  std::vector<std::string> targets;
  std::vector<std::string> policies;
  bool sarif = false;
  bool rules = false;
};

constexpr std::string_view level_name(CheckLevel level) {
  return level == CheckLevel::fail ? "fail" : level == CheckLevel::warn ? "warn" : "ignore";
}

CheckPolicy read_policies(const std::vector<std::string>& paths) {
  CheckPolicy policy;
  for (const std::string& path : paths) {
    try {
      std::ifstream file(path);
      if (!file) throw Error(Errc::not_found, "cannot open the policy");
      if (std::filesystem::is_directory(path))
        throw Error(Errc::invalid_argument, "the policy is a folder, not a file");
      read_check_policy(std::string(std::istreambuf_iterator<char>(file), {}), policy);
    } catch (Error& error) {
      throw error.in(path);
    }
  }
  return policy;
}

// The file, where it is not the target itself, and the tensor.
std::string place_of(const CheckedTarget& target, const CheckFinding& finding) {
  const std::string file = finding.where == target.target ? "" : escape_for_terminal(finding.where);
  return file + (file.empty() || finding.tensor.empty() ? "" : ": ") + escape_for_terminal(finding.tensor);
}

void write_findings(Session& session, const CheckedTarget& target) {
  constexpr std::size_t kMostOfARule = 10;
  Table table(session.out, session.screen, {{}, {.color = Color::cyan}, {.narrowest = 24}, {.wraps = true}}, "  ");
  const CheckRule* rule = nullptr;
  std::size_t said = 0, left = 0;
  const auto say_left = [&] {
    if (left != 0) table.row({"", std::string(rule->id), "", fmt::format("… and {} more; -v shows all", left)});
  };
  for (const CheckFinding& finding : target.findings) {
    if (finding.rule != rule) {
      say_left();
      rule = finding.rule;
      said = left = 0;
    }
    if (said++ >= kMostOfARule && !session.shows_all()) {
      ++left;
      continue;
    }
    const std::string level(level_name(finding.level));
    table.row({session.screen.paint(finding.level == CheckLevel::fail ? Color::red : Color::yellow, level),
               std::string(finding.rule->id), place_of(target, finding), escape_for_terminal(finding.what)});
  }
  say_left();
  table.finish();
}

std::string what_it_is(const Terminal& screen, const CheckedTarget& target) {
  if (target.checkpoints != 0) return screen.plural(target.checkpoints, "checkpoint");
  if (!target.is_opened) return "cannot be opened";
  return fmt::format("{}, {}", screen.plural(target.tensors, "tensor"), screen.bytes_in_words(target.bytes));
}

void write_text(Session& session, const CheckReport& report) {
  std::uint64_t failed = 0;
  for (const CheckedTarget& target : report.targets) {
    const std::uint64_t failures = target.failures(), warnings = target.findings.size() - failures;
    failed += failures != 0 ? 1 : 0;
    const std::string label =
        session.screen.paint(failures != 0 ? Color::red : Color::green, failures != 0 ? "FAIL" : "ok  ") + "  ";
    std::string line = escape_for_terminal(target.target) + ": ";
    line += what_it_is(session.screen, target);
    if (failures != 0) line += ", " + plural(failures, "failure");
    if (warnings != 0) line += ", " + plural(warnings, "warning");
    session.out.line(labelled(session.screen, label, line));
    write_findings(session, target);
  }
  if (session.quiet) return;
  session.out.flush();  // before the verdict on stderr
  const std::uint64_t all = report.targets.size();
  if (failed == 0)
    session.say(fmt::format("{} {}", plural(all, "target"), all == 1 ? "passes" : "pass"));
  else
    session.say(fmt::format("{} of {} {}", failed, plural(all, "target"), failed == 1 ? "fails" : "fail"));
}

void write_json(Session& session, const CheckReport& report) {
  JsonWriter json(session.out, "ballast.check/1");
  json.field("passes", report.passes());
  json.key("targets");
  json.begin_array(JsonWriter::Layout::lines);
  for (const CheckedTarget& target : report.targets) {
    json.begin_object(JsonWriter::Layout::lines);
    json.field("target", target.target);
    json.field("passes", target.passes());
    json.field("opened", target.is_opened);
    json.field("checkpoints", target.checkpoints);
    json.field("tensors", target.tensors);
    json.field("bytes", target.bytes);
    json.key("findings");
    json.begin_array(JsonWriter::Layout::lines);
    for (const CheckFinding& finding : target.findings) {
      json.begin_object();
      json.field("rule", finding.rule->id);
      json.field("level", level_name(finding.level));
      json.field("where", finding.where);
      finding.tensor.empty() ? json.field("tensor", nullptr) : json.field("tensor", finding.tensor);
      json.field("what", finding.what);
      json.end();
    }
    json.end();
    json.end();
  }
  json.end();
  json.finish();
}

void write_check_sarif(Session& session, const CheckReport& report) {
  std::vector<SarifRule> rules;
  for (const CheckRule& rule : kCheckRules) rules.push_back({rule.id, rule.what});
  std::vector<SarifResult> results;
  for (const CheckedTarget& target : report.targets) {
    for (const CheckFinding& finding : target.findings) {
      const std::string tensor = finding.tensor.empty() ? "" : finding.tensor + " ";
      results.push_back({finding.rule->id, finding.level == CheckLevel::fail ? "error" : "warning",
                         tensor + finding.what, finding.where});
    }
  }
  write_sarif(session.out, "ballast check", rules, results);
}

void write_rules(Session& session) {
  Table table(session.out, session.screen, {{.color = Color::cyan}, {}, {.wraps = true}});
  for (const CheckRule& rule : kCheckRules)
    table.row({std::string(rule.id), std::string(level_name(rule.level)), std::string(rule.what)});
  table.finish();
}

int run_check(Session& session, const CheckArguments& arguments) {
  if (arguments.rules) {
    write_rules(session);
    return 0;
  }
  if (arguments.targets.empty()) throw Error(Errc::invalid_argument, "check what?").hint("name files and folders");
  if (std::ranges::count(arguments.targets, "-") != 0)
    throw Error(Errc::invalid_argument, "standard input cannot be checked, since a check reads a file several times")
        .hint("write it to a file first; scan and ls take it");
  if (arguments.sarif && session.json)
    throw Error(Errc::invalid_argument, "--sarif and --json are two documents").hint("leave one of the two out");
  CheckOptions options;
  options.open = session.open_options();
  options.policy = read_policies(arguments.policies);
  options.threads = session.threads;
  auto bar = session.progress_bar();
  options.progress = bar.callback();
  std::vector<std::string> targets;
  for (const std::string& target : arguments.targets) targets.push_back(session.target_in(target));
  const CheckReport report = check(targets, options);
  bar.clear();
  if (arguments.sarif)
    write_check_sarif(session, report);
  else if (session.json)
    write_json(session, report);
  else
    write_text(session, report);
  return report.passes() ? 0 : info(Errc::mismatch).exit_code;
}

}  // namespace

void add_check(Command& verb, Session& session) {
  auto arguments = std::make_shared<CheckArguments>();
  verb.positional("TARGET", &arguments->targets, "files and folders, https://, hf://, s3://");
  verb.option("--policy", "FILE", &arguments->policies,
              "what fails and what is trusted, a line each: fail RULE, warn RULE, ignore RULE, dtypes A B, a pattern");
  verb.flag("--rules", &arguments->rules, "show the rules and what they do by default; check nothing");
  verb.flag("--sarif", &arguments->sarif, "a SARIF 2.1.0 document, for programs that show findings");
  add_json_option(verb, session);
  verb.examples =
      "  ballast check model/\n  ballast check *.safetensors --policy models.policy\n"
      "  ballast check models/ --sarif > findings.sarif\n";
  verb.run = [arguments, &session] { return run_check(session, *arguments); };
}

}  // namespace ballast::cli
