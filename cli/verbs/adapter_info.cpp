// adapter info: an adapter at a glance.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <ballast/error.hpp>
#include <ballast/text.hpp>

#include "../info_text.hpp"
#include "../json_writer.hpp"
#include "../remedies.hpp"
#include "adapter_verbs.hpp"

namespace ballast::cli {
namespace {

using Layout = JsonWriter::Layout;

void write_scale(JsonWriter& json, const AdapterSummary::Scale& scale) {
  json.begin_object();
  json.field("rank", scale.rank);
  json.field("alpha", scale.alpha);
  json.field("scaling", scale.scaling);
  json.field("modules", scale.modules);
  json.end();
}

void text_or_null(JsonWriter& json, std::string_view name, const std::string& text) {
  text.empty() ? json.field(name, nullptr) : json.field(name, text);
}

void write_json(Session& session, const Adapter& adapter, const AdapterSummary& summary) {
  JsonWriter json(session.out, "ballast.adapter/1");
  json.field("target", adapter.source);
  text_or_null(json, "type", summary.type);
  if (summary.possible_types.size() > 1) json.array_field("possible_types", summary.possible_types);
  json.array_field("variants", summary.variants);
  json.field("dialect", name(adapter.dialect));
  text_or_null(json, "base_model", summary.base_model);
  json.key("scales");
  json.begin_array(Layout::lines);
  for (const auto& scale : summary.scales) write_scale(json, scale);
  json.end();
  json.key("modules");
  json.begin_object();
  for (const auto& module : summary.modules) json.field(module.name, module.count);
  json.end();
  json.array_field("saved_whole", summary.saved_whole);
  json.field("tensors", summary.tensors);
  json.field("parameters", summary.parameters);
  json.field("bytes", summary.bytes);
  json.key("dtypes");
  json.begin_array();
  for (const DType dtype : summary.dtypes) json.value(name(dtype));
  json.end();
  json.key("merge");
  json.begin_object();
  summary.formula.empty() ? json.field("why_not", summary.why_not_merged) : json.field("formula", summary.formula);
  json.end();
  json.key("problems");
  json.begin_array(Layout::lines);
  for (const AdapterProblem& problem : find_problems(adapter)) {
    json.begin_object();
    json.field("text", problem.text);
    json.field("hint", worded(problem.hint));
    json.field("harmless", problem.is_harmless);
    json.end();
  }
  json.end();
  json.finish();
}

void write_text(Session& session, const Adapter& adapter, const AdapterSummary& summary) {
  InfoText text(session);
  const Terminal& screen = session.screen;
  text.line("target", escape_for_terminal(adapter.source));
  const std::string variants = fmt::format("{}", fmt::join(summary.variants, ", "));
  text.line("type", fmt::format("{}{}, as {} has it", fmt::join(summary.possible_types, " or "),
                                variants.empty() ? "" : " (" + variants + ")", name(adapter.dialect)));
  if (!summary.base_model.empty()) text.line("base", escape_for_terminal(summary.base_model));
  std::vector<std::string> lines;
  for (const auto& scale : summary.scales)
    lines.push_back(fmt::format("rank {}, alpha {}: scaling {}, {}", scale.rank, scale.alpha,
                                screen.number(scale.scaling, 6), screen.plural(scale.modules, "module")));
  text.facts("scaling", lines);
  lines.clear();
  for (const auto& module : summary.modules)
    lines.push_back(fmt::format("{} {}{}", module.name, screen.times(), module.count));
  if (!lines.empty()) text.facts("modules", {escape_for_terminal(fmt::format("{}", fmt::join(lines, ", ")))});
  if (!summary.saved_whole.empty())
    text.facts("replaces", {escape_for_terminal(fmt::format("{}", fmt::join(summary.saved_whole, ", ")))});
  text.line("merge", summary.formula.empty() ? fmt::format("cannot be merged: {}", summary.why_not_merged)
                                             : fmt::format("each of these becomes {}", summary.formula));
  text.line("tensors", screen.count(summary.tensors));
  text.line("parameters", screen.count(summary.parameters));
  text.line("bytes", screen.bytes(summary.bytes));
  lines.clear();
  for (const DType dtype : summary.dtypes) lines.emplace_back(name(dtype));
  text.line("dtypes", fmt::format("{}", fmt::join(lines, ", ")));
  lines.clear();
  for (const AdapterProblem& problem : find_problems(adapter))
    lines.push_back(escape_for_terminal(fmt::format("{}: {}", problem.text, worded(problem.hint))));
  text.facts("problems", lines);
}

}  // namespace

void show_info(Session& session, const Adapter& adapter) try {
  const AdapterSummary summary = summarize(adapter);
  session.json ? write_json(session, adapter, summary) : write_text(session, adapter, summary);
} catch (Error& error) {
  throw error.in(adapter.source);
}

}  // namespace ballast::cli
