#include "shell_words.hpp"

#include <utility>

#include <ballast/listing.hpp>
#include <ballast/names.hpp>
#include <ballast/transform.hpp>

#include "options.hpp"

namespace ballast::cli {
namespace {

std::vector<std::string> every_dtype() {
  std::vector<std::string> names;
  for (const DTypeInfo& dtype : all_dtypes()) names.emplace_back(dtype.name);
  return names;
}

// The values of an option that takes one of a few words.
std::vector<std::string> choices_of(const Argument& option) {
  const std::string& name = option.long_name;
  if (name == "color" || name == "save-embeddings") return {"auto", "always", "never"};
  if (name == "block-endian") return {"big", "little"};
  if (name == "to") return {"peft", "diffusers", "kohya", "gguf"};
  if (name == "names") return {"hf", "gguf"};
  if (name == "sort") return {kSortNames.begin(), kSortNames.end()};
  if (name == "architecture") {
    const auto names = architectures_with_names();
    return {names.begin(), names.end()};
  }
  if (name != "dtype") return {};
  std::vector<std::string> choices = cast_targets();
  if (option.value_name == "DTYPES") return every_dtype();
  const bool may_encode = option.value_name == "[GLOB=]DTYPE";
  if (may_encode) {
    for (const DType type : encodable_types()) choices.emplace_back(ballast::name(type));
  }
  return choices;
}

bool is_path(std::string_view value_name) {
  return value_name == "FILE" || value_name == "TARGET" || value_name == "ADAPTER";
}

std::vector<OptionWords> options_of(const Command& command) {
  std::vector<OptionWords> options;
  for (const Argument& argument : command.arguments) {
    if (argument.is_positional()) continue;
    options.push_back({.long_name = argument.long_name,
                       .short_name = argument.short_name,
                       .description = argument.description,
                       .takes_value = argument.takes_value(),
                       .takes_file = is_path(argument.value_name),
                       .choices = choices_of(argument)});
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
