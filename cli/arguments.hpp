// The command line as a tree: the arguments that may stand behind each command, and where each value goes. The verbs
// describe the tree, parse() reads the user's words by it, and help and completion are written from it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace ballast::cli {

// The answer that a flag asks for instead of running a command.
enum class Answer { help, help_all, version };

struct Argument {
  using Once = std::function<void(const std::string&)>;
  using Often = std::function<void(const std::vector<std::string>&)>;
  // Where the value goes. The destination must live until parse() has returned. Its type says how often the argument
  // may be given:
  //   Answer, bool                            a flag
  //   unsigned, uint64_t, double              a number, at most once
  //   std::string                             at most once; a positional must be given
  //   std::optional<std::string>, Once        at most once
  //   std::vector<std::string>, Often         any number of times
  using Destination = std::variant<Answer, bool*, unsigned*, std::uint64_t*, double*, std::string*,
                                   std::optional<std::string>*, Once, std::vector<std::string>*, Often>;

  std::string short_name;  // "o", or empty
  std::string long_name;   // "output"; empty for a positional
  std::string value_name;  // "FILE"; the name of a positional; empty for a flag
  Destination destination;
  std::string description;
  std::string old_name{};  // "meta", which the parser takes and nobody is shown; or empty
  std::string group{};     // the title that the help has above it; empty for "Options"
  bool is_rare = false;    // its group is rarely needed: the help only names it, unless all of it is asked for
  std::string implied{};   // the value if none follows, of an option whose values begin like numbers; or empty

  bool is_positional() const { return long_name.empty(); }
  bool is_required() const { return is_positional() && std::holds_alternative<std::string*>(destination); }
  bool is_repeatable() const {
    return std::holds_alternative<std::vector<std::string>*>(destination) || std::holds_alternative<Often>(destination);
  }
  bool takes_value() const { return !value_name.empty(); }
};

// The command itself, one of its verbs (`meta`), or a verb of that verb (`meta get`). Each of them has --help.
struct Command {
  Command(std::string name, std::string summary, const Command* parent = nullptr);
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  // `names` is for example "--dtype", "-o,--output", or "--metadata,--meta", whose second name is an old one.
  void flag(const std::string& names, Argument::Destination destination, std::string description);
  void option(const std::string& names, std::string value_name, Argument::Destination destination,
              std::string description);
  // The options that are added from now on stand under this title in the help.
  void group(std::string title) { group_ = {std::move(title), false}; }
  void rare_group(std::string title) { group_ = {std::move(title), true}; }
  void positional(std::string name, Argument::Destination destination, std::string description);

  // If a command has verbs, one of them must follow.
  Command& verb(std::string name, std::string summary);

  std::string path() const;  // "ballast meta get"

  std::string name, summary;
  std::string examples;
  std::vector<Argument> arguments;
  std::list<Command> verbs;  // a list, so that the verbs keep their addresses
  const Command* parent;
  std::function<int()> run;  // returns the exit code; empty if a verb must follow

 private:
  std::pair<std::string, bool> group_;
};

// The meaning of the user's words.
struct Parsed {
  const Command* command = nullptr;  // the innermost command that the words name
  std::optional<Answer> answer;      // the answer that they ask for instead of running the command
  std::string problem;               // why the command cannot be run; empty if it can
  std::vector<std::string> unknown;  // the words that the command does not know, also beside an answer
};

// Sets the destinations of the arguments; even if there is a problem, some may be set. Throws what their functions
// throw.
Parsed parse(const Command& root, std::vector<std::string> words);

// The first word that is neither an option of the command, or of one of its verbs, nor the value of such an option.
// If there is none, as many as there are words.
std::size_t place_of_verb(const Command& root, const std::vector<std::string>& words);

}  // namespace ballast::cli
