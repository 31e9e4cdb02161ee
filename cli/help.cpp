#include "help.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "verbs/verbs.hpp"
#include "wrap.hpp"

namespace ballast::cli {
namespace {

struct Entry {
  std::string left, right;
};

constexpr std::string_view kExamples = R"(  ballast info model.safetensors
  ballast diff a.safetensors b.safetensors
  ballast convert model/ half/ --dtype BF16
)";

constexpr std::string_view kExitCodes =
    "0 fine; 1 the answer is no (differs, findings); 2 used wrongly; 3 cannot read or write; 4 malformed or over a "
    "limit; 5 refused as unsafe; 6 unsupported; 130 interrupted";

std::string option_left(const Argument& option) {
  const std::string short_name = option.short_name.empty() ? "    " : fmt::format("-{}, ", option.short_name);
  return short_name + "--" + option.long_name + (option.takes_value() ? " " + option.value_name : "");
}

// Options that only print an answer make no sense after a verb.
bool is_listed(const Command& command, const Argument& argument) {
  if (argument.is_positional()) return false;
  const bool is_answer = std::holds_alternative<Answer>(argument.destination) || argument.long_name == "limits";
  return command.parent == nullptr || !is_answer;
}

std::vector<Entry> positionals(const Command& command) {
  std::vector<Entry> entries;
  for (const Argument& argument : command.arguments) {
    if (argument.is_positional()) entries.push_back({argument.value_name, argument.description});
  }
  return entries;
}

std::vector<Entry> verbs(const Command& command) {
  std::vector<Entry> entries;
  for (const Command& verb : command.verbs) entries.push_back({verb.name, verb.summary});
  return entries;
}

struct OptionGroup {
  std::string title;
  bool is_rare;
  std::vector<const Argument*> options;
};

// In the order in which their titles were given first.
std::vector<OptionGroup> groups_of(const Command& command) {
  std::vector<OptionGroup> groups;
  for (const Argument& argument : command.arguments) {
    if (!is_listed(command, argument)) continue;
    auto group = std::ranges::find(groups, argument.group, &OptionGroup::title);
    if (group == groups.end()) group = groups.insert(group, {argument.group, argument.is_rare, {}});
    group->options.push_back(&argument);
  }
  return groups;
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

// Help as a text that fits a terminal; a pipe gets lines of a usual length.
class HelpText {
 public:
  explicit HelpText(const Terminal& terminal) : terminal_(terminal) {
    constexpr std::size_t kUsualWidth = 100;
    if (!terminal_.interactive) terminal_.width = kUsualWidth;
    terminal_.interactive = true;
  }

  void prose(std::string_view label, std::string_view words) { text_ += labelled(terminal_, label, words) + "\n"; }
  void gap() { text_ += "\n"; }
  void title(std::string_view title) {
    text_ += "\n" + terminal_.paint(Color::bold, labelled(terminal_, "", title)) + "\n";
  }

  void section(std::string_view heading, const std::vector<Entry>& entries) {
    if (entries.empty()) return;
    title(heading);
    const std::size_t width = width_of_left(entries);
    for (const Entry& entry : entries) {
      std::string left = spelled(entry.left);
      if (columns_of(left) > width) {
        text_ += fmt::format("  {}\n", left);
        left.clear();
      }
      const std::size_t right = std::max(terminal_.width - std::min(terminal_.width, width + 4), kNarrowestRight);
      for (const std::string& line : wrapped(spelled(entry.right), right)) {
        text_ += fmt::format("  {:<{}}  {}\n", left, width, line);
        left.clear();
      }
    }
  }

  void options(const OptionGroup& group) {
    std::vector<Entry> entries;
    for (const Argument* option : group.options) entries.push_back({option_left(*option), option->description});
    section(group.title.empty() ? "Options" : group.title, entries);
  }

  // An example that does not fit goes on behind a backslash, so that it can be pasted.
  void example(std::string_view line) {
    if (!line.starts_with("  ")) return prose("", line);
    std::string shown;
    std::size_t column = 0;
    for (const std::string& word : shell_words(line.substr(2))) {
      const bool is_first = column == 0;
      if (!is_first && column + 1 + columns_of(word) + 2 > terminal_.width) {
        shown += " \\\n     ";
        column = 5;
      }
      shown += (is_first ? "  " : " ") + word;
      column += columns_of(word) + (is_first ? 2 : 1);
    }
    text_ += shown + "\n";
  }

  void examples(std::string_view lines) {
    if (lines.empty()) return;
    title("Examples");
    while (!lines.empty()) {
      example(lines.substr(0, lines.find('\n')));
      lines.remove_prefix(lines.find('\n') + 1);
    }
  }

  std::string text() && { return std::move(text_); }

 private:
  static constexpr std::size_t kWidestLeft = 20, kNarrowestRight = 24;

  std::string spelled(const std::string& text) const { return terminal_.utf8 ? text : prose_in_ascii(text); }

  std::size_t width_of_left(const std::vector<Entry>& entries) const {
    std::size_t width = 0;
    for (const Entry& entry : entries) width = std::max(width, columns_of(spelled(entry.left)));
    return width + 4 + kNarrowestRight > terminal_.width ? std::min(width, kWidestLeft) : width;
  }

  // The words of a command line, in which quotes hold words together.
  static std::vector<std::string> shell_words(std::string_view line) {
    std::vector<std::string> words(1);
    bool is_quoted = false;
    for (const char c : line) {
      if (c == '\'') is_quoted = !is_quoted;
      if (c == ' ' && !is_quoted)
        words.emplace_back();
      else
        words.back() += c;
    }
    return words;
  }

  Terminal terminal_;
  std::string text_;
};

// Options that few people look for: only their names, and where they are explained.
void add_rare_options(HelpText& help, const Command& command) {
  std::vector<Entry> entries;
  for (const OptionGroup& group : groups_of(command)) {
    if (!group.is_rare) continue;
    std::vector<std::string> names;
    for (const Argument* option : group.options) names.push_back("--" + option->long_name);
    entries.push_back({group.title, fmt::format("{}", fmt::join(names, " "))});
  }
  const bool is_top = command.parent == nullptr;
  help.section("More, which " + (is_top ? "ballast help options" : command.path() + " --help-all") + " explains",
               entries);
}

void add_options(HelpText& help, const Command& command, bool all) {
  for (const OptionGroup& group : groups_of(command)) {
    if (all || !group.is_rare) help.options(group);
  }
  if (!all) add_rare_options(help, command);
}

}  // namespace

std::string help_text(const Command& command, const Terminal& terminal, bool all) {
  const bool is_top = command.parent == nullptr;
  HelpText help(terminal);
  help.prose("", command.summary);
  help.gap();
  help.prose(terminal.paint(Color::bold, "Usage:") + " ", usage_line(command));
  help.section("Arguments", positionals(command));
  help.section("Verbs", verbs(command));
  add_options(help, command, all);
  if (!is_top) {
    help.gap();
    help.prose("", "Options of every verb: ballast help options");
  }
  help.examples(is_top && command.examples.empty() ? kExamples : command.examples);
  if (!is_top) return std::move(help).text();
  help.title("Exit codes");
  help.prose("  ", kExitCodes);
  return std::move(help).text();
}

std::string common_options_text(const Command& root, const Terminal& terminal) {
  HelpText help(terminal);
  help.prose("", "What every verb takes, before or behind it.");
  for (const OptionGroup& group : groups_of(root)) {
    if (group.is_rare) help.options(group);
  }
  return std::move(help).text();
}

std::string short_usage(const Terminal& terminal) {
  HelpText help(terminal);
  help.prose("", "ballast looks into model checkpoints, compares them and converts them.");
  help.gap();
  help.prose("usage: ", "ballast VERB TARGET… [options]");
  std::vector<Entry> entries;
  for (const Verb& verb : kVerbs) entries.push_back({std::string(verb.name), std::string(verb.summary)});
  help.section("Verbs", entries);
  help.gap();
  help.prose("try: ", "ballast info model.safetensors, or ballast --help");
  return std::move(help).text();
}

}  // namespace ballast::cli
