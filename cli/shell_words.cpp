#include "shell_words.hpp"

#include <utility>

#include "options.hpp"

namespace ballast::cli {
namespace {

std::vector<std::string> choices_of(const std::string& long_name) {
  if (long_name == "color") return {"auto", "always", "never"};
  if (long_name == "dtype") return cast_targets();
  return {};
}

std::vector<OptionWords> options_of(const Command& command) {
  std::vector<OptionWords> options;
  for (const Argument& argument : command.arguments) {
    if (argument.is_positional()) continue;
    options.push_back({.long_name = argument.long_name,
                       .short_name = argument.short_name,
                       .description = argument.description,
                       .takes_value = argument.takes_value(),
                       .takes_file = argument.value_name == "FILE",
                       .choices = choices_of(argument.long_name)});
  }
  return options;
}

CommandWords command_words(const Command& command, const std::string& path) {
  CommandWords result{path, {}, options_of(command)};
  for (const Command& verb : command.verbs) result.words.push_back({verb.name, verb.summary});
  for (const Argument& argument : command.arguments) {
    if (argument.value_name == "SHELL") result.words = {{"bash", ""}, {"zsh", ""}, {"fish", ""}};
  }
  return result;
}

}  // namespace

std::vector<CommandWords> all_commands(const Command& root) {
  std::vector<CommandWords> commands;
  std::vector<std::pair<const Command*, std::string>> todo = {{&root, ""}};
  while (!todo.empty()) {
    const auto [command, path] = todo.back();
    todo.pop_back();
    commands.push_back(command_words(*command, path));
    for (auto verb = command->verbs.rbegin(); verb != command->verbs.rend(); ++verb)
      todo.emplace_back(&*verb, path + " " + verb->name);
  }
  return commands;
}

}  // namespace ballast::cli
