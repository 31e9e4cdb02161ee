#include "command_line.hpp"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <new>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>
#include <CLI/CLI.hpp>
#include <ballast/error.hpp>
#include <ballast/text.hpp>

#include "help.hpp"
#include "interrupt.hpp"
#include "options.hpp"
#include "session.hpp"
#include "suggest.hpp"
#include "verbs/verbs.hpp"

namespace ballast::cli {
namespace {

struct CommandLine {
  explicit CommandLine(Session& session);

  CLI::App app{"Opens model checkpoints safely and lazily: looks into them, compares them, converts them.", "ballast"};
  std::vector<std::pair<CLI::App*, Run>> verbs;
  bool show_limits = false;
};

CommandLine::CommandLine(Session& session) {
  app.require_subcommand(1)->fallthrough();
  app.set_help_flag("-h,--help", "this help; after a verb, that of the verb");
  app.set_version_flag("--version", "ballast " BALLAST_VERSION);
  app.add_flag("--limits", show_limits, "the limits on input, with their defaults");
  app.get_option("--version")->description("the version");
  add_common_options(app, session);
  for (const Verb& verb : kVerbs) {
    CLI::App* sub = app.add_subcommand(std::string(verb.name), std::string(verb.summary));
    verbs.emplace_back(sub, verb.add(*sub, session));
  }
}

// The verb that the arguments name, as deep as it goes: `meta get`.
const CLI::App& innermost(const CLI::App& app) {
  const CLI::App* verb = &app;
  while (!verb->get_subcommands().empty()) verb = verb->get_subcommands().front();
  return *verb;
}

std::vector<std::string> words_of(const CLI::App& app) {
  std::vector<std::string> words;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; }))
    words.push_back(verb->get_name());
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) words.push_back("--" + name);
  return words;
}

// What CLI11 says, with the way out added: the nearest verb or option, or where to read on.
Error usage_error(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& verb = innermost(app);
  const auto help = fmt::format("{} --help shows how it is used", command_path(verb));
  const auto unknown = app.remaining(true);
  if (unknown.empty()) {
    const bool needs_verb = std::string_view(error.what()) == "A subcommand is required";
    return Error(Errc::invalid_argument, needs_verb ? command_path(verb) + " needs a verb" : error.what()).hint(help);
  }

  auto words = words_of(verb);
  if (&verb != &app) {
    for (auto& word : words_of(app)) {
      if (word.starts_with("--")) words.push_back(word);
    }
  }
  const std::string& first = unknown.front();
  const bool wants_verb =
      !first.starts_with("-") && !verb.get_subcommands([](const CLI::App*) { return true; }).empty();
  Error result(Errc::invalid_argument, fmt::format("{} \"{}\"",
                                                   wants_verb               ? "there is no verb"
                                                   : first.starts_with("-") ? "there is no option"
                                                                            : "unexpected argument",
                                                   first));
  if (const auto word = nearest(first.substr(0, first.find('=')), words))
    return result.hint(fmt::format("did you mean {}?", *word));
  return result.hint(help);
}

// CLI11 takes the arguments last first.
std::vector<std::string> arguments(int argc, char** argv) {
  std::vector<std::string> args(argv + 1, argv + argc);
  // `ballast help convert` is what many type first.
  if (!args.empty() && args[0] == "help") {
    args.erase(args.begin());
    args.push_back("--help");
  }
  std::reverse(args.begin(), args.end());
  return args;
}

int dispatch(Session& session, int argc, char** argv) {
  if (argc <= 1) {
    fmt::print(stderr, "{}", short_usage());
    return info(Errc::invalid_argument).exit_code;
  }

  CommandLine line(session);
  try {
    line.app.parse(arguments(argc, argv));
  } catch (const CLI::CallForHelp&) {
    session.out.write(help_text(innermost(line.app), terminal_on(STDOUT_FILENO, session.color)));
    return 0;
  } catch (const CLI::CallForVersion& version) {
    session.out.line(version.what());
    return 0;
  } catch (const CLI::ParseError& error) {
    if (!line.show_limits) throw usage_error(line.app, error);
  }
  if (line.show_limits) {
    session.out.write(limits_text());
    return 0;
  }

  session.screen = terminal_on(STDOUT_FILENO, session.color);
  session.errors = terminal_on(STDERR_FILENO, session.color);
  for (const auto& [verb, run_verb] : line.verbs) {
    if (verb->parsed()) return run_verb();
  }
  return info(Errc::invalid_argument).exit_code;
}

void report(const Session& session, std::string_view message, std::string_view hint) {
  const Terminal terminal = terminal_on(STDERR_FILENO, session.color);
  fmt::print(stderr, "{} {}\n", terminal.paint(Color::red, "ballast:"), escape_for_terminal(message));
  if (!hint.empty()) fmt::print(stderr, "  {} {}\n", terminal.paint(Color::cyan, "hint:"), escape_for_terminal(hint));
}

int report(const Session& session, const Error& error) {
  if (error.code() == Errc::cancelled && interrupted() != 0) {
    report(session, "interrupted", "");
    return 128 + interrupted();
  }
  const bool could_be_raised = error.code() == Errc::limit && error.hint().empty();
  report(session, error.what(),
         could_be_raised ? "if the file is honest, raise the limit with --limit NAME=VALUE; ballast --limits lists them"
                         : error.hint());
  return info(error.code()).exit_code;
}

}  // namespace

int run(int argc, char** argv) {
  catch_signals();
  Session session;
  try {
    const int exit_code = dispatch(session, argc, argv);
    session.out.flush();
    return exit_code;
  } catch (const ReaderGone&) {
    die_of(SIGPIPE);
  } catch (const Error& error) {
    return report(session, error);
  } catch (const std::bad_alloc&) {
    report(session, "out of memory", "open the file by its path rather than through a pipe, or give it more memory");
    return info(Errc::limit).exit_code;
  } catch (const std::exception& error) {
    report(session, error.what(), "");
    return info(Errc::io).exit_code;
  }
}

}  // namespace ballast::cli
