// The command line as a tree: what may stand behind each command, and where its value goes. The verbs describe it,
// parse() reads the user's words by it, and help and completion are written from it.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace ballast::cli {

// What a flag asks for instead of running anything.
enum class Answer { help, version };

struct Argument {
  using Once = std::function<void(const std::string&)>;
  using Often = std::function<void(const std::vector<std::string>&)>;
  // Where the value goes, which must live until parse() returned. Its type says how often there is one:
  //   Answer, bool                            a flag
  //   unsigned, uint64_t, double              a number, at most once
  //   std::string                             at most once; a positional must be given
  //   std::optional<std::string>, Once        at most once
  //   std::vector<std::string>, Often         any number of times
  using Destination = std::variant<Answer, bool*, unsigned*, std::uint64_t*, double*, std::string*,
                                   std::optional<std::string>*, Once, std::vector<std::string>*, Often>;

  std::string short_name;  // "o", or empty
  std::string long_name;   // "output"; empty where it is positional
  std::string value_name;  // "FILE"; what a positional is called; empty for a flag
  Destination destination;
  std::string description;

  bool is_positional() const { return long_name.empty(); }
  bool is_required() const { return is_positional() && std::holds_alternative<std::string*>(destination); }
  bool is_repeatable() const {
    return std::holds_alternative<std::vector<std::string>*>(destination) || std::holds_alternative<Often>(destination);
  }
  bool takes_value() const { return !value_name.empty(); }
};

// The command itself, a verb of it (`meta`), or a verb of that (`meta get`). Every one of them has --help.
struct Command {
  Command(std::string name, std::string summary, const Command* parent = nullptr);
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  // `names` are "--dtype", or "-o,--output".
  void flag(const std::string& names, Argument::Destination destination, std::string description);
  void option(const std::string& names, std::string value_name, Argument::Destination destination,
              std::string description);
  void positional(std::string name, Argument::Destination destination, std::string description);

  // Where there are verbs, one of them must follow.
  Command& verb(std::string name, std::string summary);

  std::string path() const;  // "ballast meta get"

  std::string name, summary;
  std::string examples;
  std::vector<Argument> arguments;
  std::list<Command> verbs;  // which stay where they are
  const Command* parent;
  std::function<int()> run;  // to the exit code; empty where a verb must follow
};

// What the user's words came to.
struct Parsed {
  const Command* command = nullptr;  // the innermost that they name
  std::optional<Answer> answer;      // what they ask for instead of running it
  std::string problem;               // why that cannot be run; empty where it can
  std::vector<std::string> unknown;  // the words that mean nothing there
};

// Sets what the arguments are bound to, in part even where there is a problem. Throws what their functions throw.
Parsed parse(const Command& root, std::vector<std::string> words);

}  // namespace ballast::cli
