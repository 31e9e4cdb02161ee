#include "command_line.hpp"

#include <algorithm>
#include <csignal>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>
#include <ballast/error.hpp>
#include <ballast/suggest.hpp>
#include <ballast/text.hpp>

#include "arguments.hpp"
#include "help.hpp"
#include "host.hpp"
#include "interrupt.hpp"
#include "options.hpp"
#include "remedies.hpp"
#include "session.hpp"
#include "together.hpp"
#include "verbs/verbs.hpp"
#include "wrap.hpp"

namespace ballast::cli {
namespace {

// Describes the command with all of its verbs. Only the verbs that the words may mean get their arguments, because
// describing all of them takes as long as the rest of a start; completion describes all of them.
void describe(const Program& program, Command& root, Session& session, bool& show_limits,
              const std::vector<std::string>& words) {
  root.examples = program.examples;
  root.flag("--version", Answer::version, "the version");
  root.flag("--limits", &show_limits, "the limits on input, with their defaults");
  add_common_options(root, session);
  // Every process has caches of its own, or sees those of others at another time: then not all would read the same.
  if (program.team != nullptr)
    std::erase_if(root.arguments,
                  [](const Argument& option) { return option.long_name.find("cache") != option.long_name.npos; });
  if (program.rank_table != nullptr)
    root.flag("--rank-report", &session.rank_report, "the bytes that each process read, sent, wrote and held");
  const auto is_said = [&](std::string_view name) { return std::ranges::find(words, name) != words.end(); };
  const bool is_about_all = is_said("completion");
  for (const Verb& verb : kVerbs) {
    if (!program.has(verb.name)) continue;
    Command& described = root.verb(std::string(verb.name), std::string(verb.summary));
    // Words without a verb mean `info`.
    if (is_about_all || is_said(verb.name) || verb.name == "info") verb.add(described, session);
    keep_verbs_of(program, described);
  }
}

std::vector<std::string> words_of(const Command& command) {
  std::vector<std::string> words;
  for (const Command& verb : command.verbs) words.push_back(verb.name);
  for (const Argument& argument : command.arguments) {
    if (!argument.is_positional()) words.push_back("--" + argument.long_name);
  }
  return words;
}

// The word nearest to `word`: options are compared with options and verbs with verbs, and dashes do not count as
// letters that somebody got right. A word that shares less than half of its letters with another is not near it.
std::optional<std::string> nearest_word(const std::string& word, const std::vector<std::string>& words) {
  const std::string dashes = word.substr(0, std::min<std::size_t>(word.find_first_not_of('-'), 2));
  const std::string_view letters = std::string_view(word).substr(dashes.size());
  std::vector<std::string_view> candidates;
  for (const std::string_view candidate : words) {
    const bool is_option = candidate.starts_with("--");
    if (is_option == !dashes.empty()) candidates.push_back(candidate.substr(is_option ? 2 : 0));
  }
  const auto found = nearest(letters, candidates);
  if (!found || edit_distance(letters, *found, letters.size()) * 2 >= letters.size()) return std::nullopt;
  return (dashes.empty() ? "" : "--") + *found;
}

// What other programs call what some verb does.
struct OtherWord {
  std::string_view word, verb;
};
constexpr OtherWord kOtherWords[] = {
    {"inspect", "info"},    {"show", "info"},      {"describe", "info"},       {"summary", "info"},
    {"dump", "ls"},         {"list", "ls"},        {"tree", "ls --tree"},      {"du", "ls --tree"},
    {"print", "cat"},       {"get", "cat"},        {"quantize", "convert"},    {"split", "convert"},
    {"shard", "convert"},   {"export", "convert"}, {"cast", "convert"},        {"to", "convert"},
    {"compare", "diff"},    {"cmp", "diff"},       {"merge", "adapter merge"}, {"lora", "adapter"},
    {"sha256", "hash"},     {"checksum", "hash"},  {"download", "fetch"},      {"pull", "fetch"},
    {"audit", "scan"},      {"validate", "check"}, {"lint", "check"},          {"test", "check"},
    {"histogram", "stats"}, {"browse", "view"},    {"visualize", "view"},      {"plot", "view"},
};

std::string_view verb_for(std::string_view word) {
  const auto found = std::ranges::find(kOtherWords, word, &OtherWord::word);
  return found == std::end(kOtherWords) ? std::string_view() : found->verb;
}

// The problem, with the way out added: the nearest verb or option, or where to read on.
Error usage_error(const Program& program, const Command& root, const Parsed& parsed) {
  const Command& command = *parsed.command;
  const auto help = fmt::format("{} --help shows how it is used", command.path());
  if (parsed.unknown.empty()) return Error(Errc::invalid_argument, parsed.problem).hint(help);

  auto words = words_of(command);
  if (&command != &root) {
    for (auto& word : words_of(root)) {
      if (word.starts_with("--")) words.push_back(word);
    }
  }
  const std::string& first = parsed.unknown.front();
  const bool wants_verb = !first.starts_with("-") && !command.verbs.empty();
  Error result(Errc::invalid_argument, fmt::format("{} \"{}\"",
                                                   wants_verb               ? "there is no verb"
                                                   : first.starts_with("-") ? "there is no option"
                                                                            : "unexpected argument",
                                                   first));
  if (wants_verb && !program.verbs.empty())
    return result.hint(
        fmt::format("{} has {}; ballast has the others, in one process", program.name, fmt::join(program.verbs, ", ")));
  if (const std::string_view verb = verb_for(first); wants_verb && &command == &root && !verb.empty())
    return result.hint(fmt::format("did you mean {}?", verb));
  if (const auto word = nearest_word(first.substr(0, first.find('=')), words))
    return result.hint(fmt::format("did you mean {}?", *word));
  return result.hint(help);
}

// A word in the place of the verb that is a target: a path that is there, anything that has a slash, or standard input.
bool is_target(const std::string& word) {
  if (word == "-") return true;
  const bool is_verb = std::ranges::any_of(kVerbs, [&](const Verb& verb) { return verb.name == word; });
  return !is_verb && (word.find('/') != word.npos || access(word.c_str(), F_OK) == 0);
}

std::vector<std::string> words_given(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  // Many people type `ballast help convert` first.
  if (!words.empty() && words[0] == "help") {
    words.erase(words.begin());
    words.push_back("--help");
  }
  return words;
}

// Whether the words ask for help about a verb that is none.
bool asks_about_nothing(const Parsed& parsed) {
  return parsed.answer && !parsed.command->verbs.empty() && !parsed.unknown.empty() &&
         !parsed.unknown.front().starts_with("-");
}

// What the streams can show. mpirun gives its processes a terminal of its own, whatever the user reads.
void look_at_streams(Session& session) {
  if (session.host != nullptr) return;
  session.screen = terminal_on(STDOUT_FILENO, session.color);
  session.errors = terminal_on(STDERR_FILENO, session.color);
  if (session.team != nullptr) session.screen = Terminal{.colored = session.color == ColorMode::always};
  session.screen.whole = session.verbose;
  session.screen.quiet = session.quiet;
  if (!session.screen.utf8) session.out.use_ascii();
}

// Carries out what the words say.
int dispatch(const Program& program, Session& session, std::vector<std::string> words) {
  Command root(std::string(program.name), std::string(program.summary));
  bool show_limits = false;
  describe(program, root, session, show_limits, words);
  const bool is_about_options = !words.empty() && words.front() == "options" && words.back() == "--help";
  if (is_about_options) words.erase(words.begin());
  const std::size_t place = place_of_verb(root, words);
  if (place < words.size() && program.has("info") && is_target(words[place])) words.insert(words.begin(), "info");
  const Parsed parsed = parse(root, std::move(words));
  if (asks_about_nothing(parsed)) throw usage_error(program, root, parsed);
  if (parsed.answer == Answer::help || parsed.answer == Answer::help_all) {
    const Terminal terminal = terminal_on(STDOUT_FILENO, session.color);
    session.out.write(is_about_options ? common_options_text(root, terminal)
                                       : help_text(*parsed.command, terminal, parsed.answer == Answer::help_all));
    return 0;
  }
  if (parsed.answer == Answer::version) {
    session.out.line(fmt::format("{} {}", program.name, BALLAST_VERSION));
    return 0;
  }
  if (show_limits) {
    session.out.write(limits_text(terminal_on(STDOUT_FILENO, session.color)));
    return 0;
  }
  if (!parsed.problem.empty()) throw usage_error(program, root, parsed);

  look_at_streams(session);
  word_for(*parsed.command);
  return session.team == nullptr ? parsed.command->run() : run_together(program, session, *parsed.command);
}

// All shards of an output are open at once, and so are all shards of an input. The low default limit is only for
// programs that call select().
void allow_many_files() {
  rlimit files = {};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  files.rlim_cur = files.rlim_max;
  static_cast<void>(setrlimit(RLIMIT_NOFILE, &files));
}

}  // namespace

int run(int argc, char** argv, const Program& program) {
  open_closed_streams();
  catch_signals();
  allow_many_files();
  if (argc <= 1 && program.verbs.empty()) {
    write_to_stderr(short_usage(terminal_on(STDERR_FILENO, ColorMode::automatic)));
    return info(Errc::invalid_argument).exit_code;
  }
  Session session;
  session.team = program.team;
  const Silence silence(session);
  try {
    int exit_code = 0;
    together(team_of(program.team), [&] {
      exit_code = dispatch(program, session, words_given(argc, argv));
      session.out.flush();
    });
    return exit_code;
  } catch (const ReaderGone&) {
    die_of(SIGPIPE);
  } catch (const Error& error) {
    return say_error(session, error);
  } catch (const std::bad_alloc&) {
    say_error(session, "out of memory", "open the file by its path rather than through a pipe, or give it more memory");
    return info(Errc::limit).exit_code;
  } catch (const std::exception& error) {
    say_error(session, error.what(), "");
    return info(Errc::io).exit_code;
  }
}

Answered run_for(const Host& host, const std::vector<std::string>& words) {
  Answered answered;
  Session session;
  session.host = &host;
  session.out = Output(&answered.out);
  const Wording wording(host.words);
  try {
    answered.exit_code = dispatch({}, session, words);
    session.out.flush();
  } catch (const Error& error) {
    throw error.advising(worded(error.hint()));
  }
  return answered;
}

void visit_commands(const std::function<void(const Command&)>& look) {
  Session session;
  bool ignored = false;
  const Program program;
  Command root(std::string(program.name), std::string(program.summary));
  describe(program, root, session, ignored, {"completion"});
  look(root);
}

}  // namespace ballast::cli
