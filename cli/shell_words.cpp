#include "shell_words.hpp"

#include <utility>

#include <ballast/dtype.hpp>

#include "help.hpp"

namespace ballast::cli {
namespace {

std::vector<std::string> floating_dtypes() {
  std::vector<std::string> names;
  for (const DTypeInfo& dtype : all_dtypes()) {
    if (dtype.kind == DTypeKind::floating && dtype.in_safetensors) names.emplace_back(dtype.name);
  }
  return names;
}

std::vector<std::string> choices_of(const std::string& long_name) {
  if (long_name == "color") return {"auto", "always", "never"};
  if (long_name == "dtype") return floating_dtypes();
  return {};
}

std::vector<OptionWords> options_of(const CLI::App& app) {
  std::vector<OptionWords> options;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_lnames().empty()) continue;
    OptionWords words;
    words.long_name = option->get_lnames()[0];
    if (!option->get_snames().empty()) words.short_name = option->get_snames()[0];
    words.description = option->get_description();
    words.takes_value = takes_value(*option);
    words.takes_file = words.takes_value && option->get_type_name() == "FILE";
    words.choices = choices_of(words.long_name);
    options.push_back(std::move(words));
  }
  return options;
}

std::vector<const CLI::App*> subcommands(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

CommandWords command_words(const CLI::App& app, const std::string& path) {
  CommandWords command{path, {}, options_of(app)};
  for (const CLI::App* sub : subcommands(app)) command.words.push_back({sub->get_name(), sub->get_description()});
  if (app.get_option_no_throw("SHELL") != nullptr) command.words = {{"bash", ""}, {"zsh", ""}, {"fish", ""}};
  return command;
}

}  // namespace

std::vector<CommandWords> all_commands(const CLI::App& root) {
  std::vector<CommandWords> commands;
  std::vector<std::pair<const CLI::App*, std::string>> todo = {{&root, ""}};
  while (!todo.empty()) {
    const auto [app, path] = todo.back();
    todo.pop_back();
    commands.push_back(command_words(*app, path));
    const auto subs = subcommands(*app);
    for (auto sub = subs.rbegin(); sub != subs.rend(); ++sub) todo.emplace_back(*sub, path + " " + (*sub)->get_name());
  }
  return commands;
}

}  // namespace ballast::cli
