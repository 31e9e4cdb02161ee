// The only file that includes CLI11: compiling CLI11 takes longer than compiling any of our files.
#include "arguments.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <ballast/error.hpp>

namespace ballast::cli {
namespace {

Argument named(const std::string& names, std::string value_name, Argument::Destination destination,
               std::string description) {
  const auto dashes = names.find("--");
  const auto old = names.find(",--", dashes);
  return {dashes == 0 ? "" : names.substr(1, 1),
          names.substr(dashes + 2, old == names.npos ? old : old - dashes - 2),
          std::move(value_name),
          std::move(destination),
          std::move(description),
          old == names.npos ? "" : names.substr(old + 3)};
}

// Adds one argument to a parser, in the way that the type of its destination needs.
struct Adder {
  CLI::App& app;
  const Argument& argument;

  std::string names() const {
    if (argument.is_positional()) return argument.value_name;
    return (argument.short_name.empty() ? "" : "-" + argument.short_name + ",") + "--" + argument.long_name +
           (argument.old_name.empty() ? "" : ",--" + argument.old_name);
  }

  void operator()(Answer answer) const {
    switch (answer) {
      case Answer::help: app.set_help_flag(names()); break;
      case Answer::help_all: app.set_help_all_flag(names()); break;
      case Answer::version: app.set_version_flag(names(), std::string()); break;
    }
  }
  void operator()(bool* flag) const { app.add_flag(names(), *flag); }
  template <class T>
  void operator()(T* value) const {
    finish(app.add_option(names(), *value));
  }
  void operator()(unsigned* value) const { add_number(value); }
  void operator()(std::uint64_t* value) const { add_number(value); }
  void operator()(double* value) const { add_number(value); }
  template <class T>
  void operator()(const std::function<void(const T&)>& function) const {
    finish(app.add_option_function<T>(names(), function));
  }
  void operator()(std::optional<std::string>* value) const {
    (*this)(std::function([value](const std::string& text) { *value = text; }));
  }

  // The number is read here and not by CLI11: CLI11's messages are about its own conversions, and CLI11 takes "-1" for
  // a very large number.
  template <class T>
  void add_number(T* value) const {
    const std::string name = argument.is_positional() ? argument.value_name : "--" + argument.long_name;
    (*this)(std::function([name, value](const std::string& text) {
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
      if (error == std::errc() && end == text.data() + text.size()) return;
      constexpr bool is_whole = std::is_integral_v<T>;
      const bool is_too_large = error == std::errc::result_out_of_range && end == text.data() + text.size();
      throw Error(Errc::invalid_argument, fmt::format("{}: \"{}\" is {}", name, text,
                                                      is_too_large ? "too large a number"
                                                      : is_whole   ? "not a whole number of at least 0"
                                                                   : "not a number"))
          .hint(fmt::format("write {} {}, for example; --help shows what it means", name, is_whole ? "8" : "0.5"));
    }));
  }

  void finish(CLI::Option* option) const {
    if (!argument.is_positional()) option->type_name(argument.value_name);
    option->required(argument.is_required());
    if (!argument.is_repeatable()) return;
    // CLI11 splits an argument like "[ab]" at its commas whenever it allows extra arguments. If it expects very many
    // positionals instead, and we take all that there are, the argument stays whole.
    constexpr int kVeryMany = 1 << 20;
    option->expected(argument.is_positional() ? kVeryMany : 1);
    option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)->allow_extra_args(false);
  }
};

// The options of a command may stand behind its verbs, too.
void build(CLI::App& app, const Command& root) {
  app.fallthrough();
  std::vector<std::pair<CLI::App*, const Command*>> todo = {{&app, &root}};
  while (!todo.empty()) {
    CLI::App& parser = *todo.back().first;
    const Command& command = *todo.back().second;
    todo.pop_back();
    for (const Argument& argument : command.arguments) std::visit(Adder{parser, argument}, argument.destination);
    if (!command.verbs.empty()) parser.require_subcommand(1);
    for (const Command& verb : command.verbs) todo.emplace_back(parser.add_subcommand(verb.name), &verb);
  }
}

const Command& innermost(const CLI::App& app, const Command& root) {
  const Command* command = &root;
  for (auto named = app.get_subcommands(); !named.empty(); named = named.front()->get_subcommands()) {
    const std::string& name = named.front()->get_name();
    command = &*std::find_if(command->verbs.begin(), command->verbs.end(),
                             [&](const Command& verb) { return verb.name == name; });
  }
  return *command;
}

// The value that an option has if none follows it; empty if one must follow.
std::string implied_value(const Command& command, std::string_view word) {
  for (const Argument& argument : command.arguments) {
    if (!argument.implied.empty() && word == "--" + argument.long_name) return argument.implied;
  }
  for (const Command& verb : command.verbs) {
    if (std::string implied = implied_value(verb, word); !implied.empty()) return implied;
  }
  return "";
}

// "--quantiles model.pt" becomes "--quantiles=0,0.5,1 model.pt": CLI11 would take the next word for the value.
void give_implied_values(const Command& root, std::vector<std::string>& words) {
  for (std::size_t i = 0; i < words.size() && words[i] != "--"; ++i) {
    const bool has_value = i + 1 < words.size() && words[i + 1].find_first_of("0123456789.") == 0;
    if (has_value || !words[i].starts_with("--")) continue;
    if (const std::string implied = implied_value(root, words[i]); !implied.empty()) words[i] += "=" + implied;
  }
}

// Puts "--threads: 1 required N missing" and "--root: At Most 1 required but received 2" into words.
std::string described(const CLI::ArgumentMismatch& error) {
  const std::string_view what = error.what();
  const std::string name(what.substr(0, what.find(':')));
  return name + (what.ends_with("missing") ? " needs a value" : " is given several times, and can be given once");
}

}  // namespace

Command::Command(std::string name_, std::string summary_, const Command* parent_)
    : name(std::move(name_)), summary(std::move(summary_)), parent(parent_) {
  flag("-h,--help", Answer::help, "this help; after a verb, that of the verb");
  flag("--help-all", Answer::help_all, "the same, with every option explained");
}

void Command::flag(const std::string& names, Argument::Destination destination, std::string description) {
  option(names, "", std::move(destination), std::move(description));
}

void Command::option(const std::string& names, std::string value_name, Argument::Destination destination,
                     std::string description) {
  arguments.push_back(named(names, std::move(value_name), std::move(destination), std::move(description)));
  arguments.back().group = group_.first;
  arguments.back().is_rare = group_.second;
}

void Command::positional(std::string name, Argument::Destination destination, std::string description) {
  arguments.push_back({"", "", std::move(name), std::move(destination), std::move(description)});
}

Command& Command::verb(std::string name, std::string summary) {
  return verbs.emplace_back(std::move(name), std::move(summary), this);
}

std::string Command::path() const {
  std::string path = name;
  for (const Command* above = parent; above != nullptr; above = above->parent) path.insert(0, above->name + " ");
  return path;
}

Parsed parse(const Command& root, std::vector<std::string> words) {
  CLI::App app("", root.name);
  build(app, root);
  give_implied_values(root, words);
  // CLI11 expects the words in reverse order.
  std::reverse(words.begin(), words.end());
  Parsed parsed;
  try {
    app.parse(std::move(words));
  } catch (const CLI::CallForHelp&) {
    parsed.answer = Answer::help;
    parsed.unknown = app.remaining(true);
  } catch (const CLI::CallForAllHelp&) {
    parsed.answer = Answer::help_all;
    parsed.unknown = app.remaining(true);
  } catch (const CLI::CallForVersion&) {
    parsed.answer = Answer::version;
  } catch (const CLI::ArgumentMismatch& error) {
    parsed.problem = described(error);
  } catch (const CLI::ParseError& error) {
    parsed.problem = error.what();
    parsed.unknown = app.remaining(true);
  }
  parsed.command = &innermost(app, root);
  const bool needs_verb = parsed.problem == "A subcommand is required";
  if (needs_verb) parsed.problem = parsed.command->path() + " needs a verb";
  return parsed;
}

std::size_t place_of_verb(const Command& root, const std::vector<std::string>& words) {
  const auto takes_next_word = [&](std::string_view word) {
    const auto is_meant = [&](const Argument& argument) {
      const bool is_named = !argument.is_positional() && (word == "--" + argument.long_name ||
                                                          (word.size() == 2 && word.substr(1) == argument.short_name));
      return is_named && argument.takes_value() && argument.implied.empty();
    };
    return std::ranges::any_of(root.arguments, is_meant) || std::ranges::any_of(root.verbs, [&](const Command& verb) {
             return std::ranges::any_of(verb.arguments, is_meant);
           });
  };
  std::size_t place = 0;
  while (place < words.size() && words[place].starts_with("-") && words[place].size() > 1) {
    if (words[place] == "--") return place + 1;
    place += takes_next_word(words[place]) ? 2U : 1U;
  }
  return std::min(place, words.size());
}

}  // namespace ballast::cli
