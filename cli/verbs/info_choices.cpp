#include "info_choices.hpp"

#include <algorithm>
#include <optional>
#include <string_view>

#include <fmt/format.h>
#include <ballast/error.hpp>
#include <ballast/summary.hpp>
#include <ballast/text.hpp>

#include "../options.hpp"
#include "../table.hpp"
#include "../wrap.hpp"

namespace ballast::cli {
namespace {

// One checkpoint of a folder that has several. One that does not open hides none of the others.
struct Choice {
  std::string target;
  std::string_view format;
  Summary summary;
  std::optional<Error> error;
};

Choice look_at_choice(const Session& session, const std::string& target) try {
  const Checkpoint checkpoint = open_to_look(session, target);
  return {target, name(checkpoint.format), summarize(checkpoint), std::nullopt};
} catch (const Error& error) {
  if (error.code() == Errc::cancelled) throw;
  return {target, "", {}, error};
}

void write_choices_json(JsonWriter& json, const std::string& folder, const std::vector<Choice>& choices) {
  json.field("target", folder);
  json.key("choices");
  json.begin_array(JsonWriter::Layout::lines);
  for (const auto& [target, format, summary, error] : choices) {
    json.begin_object();
    json.field("target", target);
    if (error) {
      json.field("error", error->what());
    } else {
      json.field("format", format);
      json.field("tensors", summary.tensors);
      json.field("parameters", summary.parameters);
      json.field("bytes", summary.bytes);
    }
    json.end();
  }
  json.end();
}

// "safetensors, 12 tensors, 8.58 kB", or why it cannot be opened.
std::string text_of(const Terminal& screen, const Choice& choice) {
  if (choice.error) return escape_for_terminal(choice.error->what());
  return fmt::format("{}, {}, {}", choice.format, screen.plural(choice.summary.tensors, "tensor"),
                     screen.bytes_in_words(choice.summary.bytes));
}

// A name is what people give back to us, and is never cut: what is said of it stands below if it does not fit beside.
void write_choices_to_terminal(Session& session, const std::vector<Choice>& choices) {
  std::size_t names = 0, widest = 0;
  for (const Choice& choice : choices) {
    names = std::max(names, columns_of(escape_for_terminal(choice.target)));
    if (!choice.error) widest = std::max(widest, columns_of(text_of(session.screen, choice)));
  }
  const bool is_beside = 2 + names + 2 + widest <= session.screen.width;
  for (const Choice& choice : choices) {
    const std::string shown = escape_for_terminal(choice.target), text = text_of(session.screen, choice);
    const std::string name = "  " + (session.screen.utf8 ? shown : in_ascii(shown));
    const std::string gap(is_beside && !choice.error ? names - columns_of(shown) + 2 : 0, ' ');
    const Color color = choice.error ? Color::red : Color::plain;
    if (gap.empty()) session.out.line(name);
    session.out.line(labelled(session.screen, gap.empty() ? "      " : name + gap, session.screen.paint(color, text)));
  }
}

void write_choices_text(Session& session, const std::string& folder, const std::vector<Choice>& choices) {
  session.out.line(labelled(
      session.screen, "",
      fmt::format("{} has {} checkpoints; give one by its name:", escape_for_terminal(folder), choices.size())));
  if (session.screen.interactive) return write_choices_to_terminal(session, choices);
  Table table(session.out, session.screen, std::vector<Table::Column>(5), "  ");
  for (const auto& [target, format, summary, error] : choices) {
    const std::string shown = escape_for_terminal(target);
    if (error)
      table.row({shown, "", "", "", escape_for_terminal(error->what())});
    else
      table.row({shown, std::string(format), session.screen.plural(summary.tensors, "tensor"),
                 session.screen.bytes(summary.bytes)});
  }
  table.finish();
}

}  // namespace

int show_choices(Session& session, const std::string& folder, const std::vector<std::string>& targets,
                 JsonWriter* json) {
  std::vector<Choice> choices;
  for (const std::string& target : targets) choices.push_back(look_at_choice(session, target));
  json ? write_choices_json(*json, folder, choices) : write_choices_text(session, folder, choices);
  const auto bad = std::ranges::find_if(choices, [](const Choice& choice) { return choice.error.has_value(); });
  return bad == choices.end() ? 0 : info(bad->error->code()).exit_code;
}

}  // namespace ballast::cli
