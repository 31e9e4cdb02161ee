#include "help.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "verbs/verbs.hpp"

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

std::string option_left(const CLI::Option& option) {
  std::string text = option.get_snames().empty() ? "    " : fmt::format("-{}, ", option.get_snames()[0]);
  if (option.get_lnames().empty()) {
    text.resize(2);
  } else {
    text += "--" + option.get_lnames()[0];
  }
  if (takes_value(option)) text += " " + option.get_type_name();
  return text;
}

std::vector<Entry> positionals(const CLI::App& app) {
  std::vector<Entry> entries;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional()) entries.push_back({option->get_name(true), option->get_description()});
  }
  return entries;
}

std::vector<Entry> options(const CLI::App& app) {
  std::vector<Entry> entries;
  for (const CLI::Option* option : app.get_options()) {
    if (option->nonpositional()) entries.push_back({option_left(*option), option->get_description()});
  }
  return entries;
}

std::vector<Entry> verbs(const CLI::App& app) {
  std::vector<Entry> entries;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; }))
    entries.push_back({verb->get_name(), verb->get_description()});
  return entries;
}

void add_section(std::string& text, const Terminal& terminal, std::string_view title,
                 const std::vector<Entry>& entries) {
  if (entries.empty()) return;
  std::size_t width = 0;
  for (const Entry& entry : entries) width = std::max(width, columns_of(entry.left));
  text += "\n" + terminal.paint(Color::bold, title) + "\n";
  for (const Entry& entry : entries) text += fmt::format("  {:<{}}  {}\n", entry.left, width, entry.right);
}

// Those that make no sense after a verb: they answer, and that is all.
bool is_answered_alone(const Entry& option) {
  return option.left.ends_with("--help") || option.left.ends_with("--version") || option.left.ends_with("--limits");
}

std::string usage_line(const CLI::App& app) {
  std::string text = command_path(app);
  if (app.get_parent() == nullptr) return text + " VERB TARGET… [options]";
  if (!verbs(app).empty()) return text + " VERB TARGET… [options]";
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_positional()) continue;
    const std::string name = option->get_name(true) + (option->get_items_expected_max() > 1 ? "…" : "");
    text += option->get_required() ? " " + name : " [" + name + "]";
  }
  return text + " [options]";
}

const CLI::App& root_of(const CLI::App& app) {
  const CLI::App* root = &app;
  while (root->get_parent() != nullptr) root = root->get_parent();
  return *root;
}

}  // namespace

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

std::string command_path(const CLI::App& app) {
  std::string path = app.get_name();
  for (const CLI::App* parent = app.get_parent(); parent != nullptr; parent = parent->get_parent())
    path.insert(0, parent->get_name() + " ");
  return path;
}

std::string help_text(const CLI::App& app, const Terminal& terminal) {
  const bool top = app.get_parent() == nullptr;
  std::string text =
      fmt::format("{}\n\n{} {}\n", app.get_description(), terminal.paint(Color::bold, "Usage:"), usage_line(app));
  add_section(text, terminal, "Arguments", positionals(app));
  add_section(text, terminal, "Verbs", verbs(app));
  add_section(text, terminal, "Options", options(app));
  if (!top) {
    auto everywhere = options(root_of(app));
    std::erase_if(everywhere, [](const Entry& entry) { return is_answered_alone(entry); });
    add_section(text, terminal, "Options of every verb", everywhere);
  }
  const std::string examples = top ? std::string(kExamples) : app.get_footer();
  if (!examples.empty()) text += fmt::format("\n{}\n{}", terminal.paint(Color::bold, "Examples"), examples);
  if (top) text += fmt::format("\n{}\n{}", terminal.paint(Color::bold, "Exit codes"), kExitCodes);
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
