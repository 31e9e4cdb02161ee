#include "help.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "verbs/verbs.hpp"
#include "wrap.hpp"

namespace ballast::cli {
namespace {

constexpr std::string_view kExamples = R"(  ballast info model.safetensors                 look at a checkpoint
  ballast ls model/ '*.mlp.*'                    list some of its tensors
  ballast cat model.safetensors wte --slice :4   print values
  ballast diff a.safetensors b.safetensors       compare two
  ballast convert model/ out.safetensors --dtype BF16
)";

constexpr std::string_view kExitCodes =
    R"(  0 fine   1 ran well, and the answer is no (differs, findings)   2 usage   3 cannot read or write
  4 malformed or over a limit   5 refused as unsafe   6 unsupported   130 interrupted
)";

struct Entry {
  std::string left, right;
};

std::string option_left(const Argument& option) {
  const std::string short_name = option.short_name.empty() ? "    " : fmt::format("-{}, ", option.short_name);
  return short_name + "--" + option.long_name + (option.takes_value() ? " " + option.value_name : "");
}

std::vector<Entry> positionals(const Command& command) {
  std::vector<Entry> entries;
  for (const Argument& argument : command.arguments) {
    if (argument.is_positional()) entries.push_back({argument.value_name, argument.description});
  }
  return entries;
}

std::vector<Entry> options(const Command& command, std::string_view group) {
  std::vector<Entry> entries;
  for (const Argument& argument : command.arguments) {
    if (!argument.is_positional() && argument.group == group)
      entries.push_back({option_left(argument), argument.description});
  }
  return entries;
}

// The titles, in the order in which they were given.
std::vector<std::string_view> groups_of(const Command& command) {
  std::vector<std::string_view> groups;
  for (const Argument& argument : command.arguments) {
    if (!argument.is_positional() && std::ranges::find(groups, argument.group) == groups.end())
      groups.push_back(argument.group);
  }
  return groups;
}

std::vector<Entry> verbs(const Command& command) {
  std::vector<Entry> entries;
  for (const Command& verb : command.verbs) entries.push_back({verb.name, verb.summary});
  return entries;
}

void add_section(std::string& text, const Terminal& terminal, std::string_view title,
                 const std::vector<Entry>& entries) {
  if (entries.empty()) return;
  constexpr std::size_t kWidestLeft = 20, kNarrowestRight = 24;
  std::size_t width = 0;
  for (const Entry& entry : entries) width = std::max(width, columns_of(entry.left));
  const std::size_t room = terminal.interactive ? terminal.width : 120;
  if (width + 4 + kNarrowestRight > room) width = std::min(width, kWidestLeft);
  const std::size_t right = std::max(room - std::min(room, width + 4), kNarrowestRight);
  text += "\n" + terminal.paint(Color::bold, title) + "\n";
  for (const Entry& entry : entries) {
    std::string left = entry.left;
    if (columns_of(left) > width) {
      text += fmt::format("  {}\n", left);
      left.clear();
    }
    for (const std::string& line : wrapped(entry.right, right)) {
      text += fmt::format("  {:<{}}  {}\n", left, width, line);
      left.clear();
    }
  }
}

// True for options that only print an answer: they make no sense after a verb.
bool is_answered_alone(const Entry& option) {
  return option.left.ends_with("--help") || option.left.ends_with("--version") || option.left.ends_with("--limits");
}

std::string usage_line(const Command& command) {
  std::string text = command.path();
  if (!command.verbs.empty()) return text + " VERB TARGET… [options]";
  for (const Argument& argument : command.arguments) {
    if (!argument.is_positional()) continue;
    const std::string name = argument.value_name + (argument.is_repeatable() ? "…" : "");
    text += argument.is_required() ? " " + name : " [" + name + "]";
  }
  return text + " [options]";
}

}  // namespace

std::string help_text(const Command& command, const Terminal& terminal) {
  const bool top = command.parent == nullptr;
  std::string text;
  for (const std::string& line : wrapped(command.summary, terminal.interactive ? terminal.width : 120))
    text += line + "\n";
  text += fmt::format("\n{} {}\n", terminal.paint(Color::bold, "Usage:"), usage_line(command));
  add_section(text, terminal, "Arguments", positionals(command));
  add_section(text, terminal, "Verbs", verbs(command));
  for (const std::string_view group : groups_of(command)) {
    auto entries = options(command, group);
    if (!top) std::erase_if(entries, is_answered_alone);
    add_section(text, terminal, group.empty() ? "Options" : group, entries);
  }
  if (!top) text += "\nOptions of every verb: ballast help options\n";
  const std::string examples = top && command.examples.empty() ? std::string(kExamples) : command.examples;
  if (!examples.empty()) text += fmt::format("\n{}\n{}", terminal.paint(Color::bold, "Examples"), examples);
  if (top) text += fmt::format("\n{}\n{}", terminal.paint(Color::bold, "Exit codes"), kExitCodes);
  return text;
}

std::string common_options_text(const Command& root, const Terminal& terminal) {
  auto everywhere = options(root, {});
  std::erase_if(everywhere, is_answered_alone);
  std::string text = "What every verb takes, before or behind it.\n";
  add_section(text, terminal, "Options of every verb", everywhere);
  return text;
}

std::string short_usage() {
  std::string text =
      "ballast looks into model checkpoints, compares them and converts them.\n\n"
      "usage: ballast VERB TARGET… [options]\n\n";
  for (const Verb& verb : kVerbs) text += fmt::format("  {:<11} {}\n", verb.name, verb.summary);
  return text + "\ntry: ballast info model.safetensors, or ballast --help\n";
}

}  // namespace ballast::cli
