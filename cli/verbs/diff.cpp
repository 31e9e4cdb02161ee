// diff: shows the differences between two checkpoints.
#include <ballast/diff.hpp>

#include <memory>

#include <fmt/format.h>
#include <ballast/error.hpp>
#include <ballast/text.hpp>

#include "../json_writer.hpp"
#include "../options.hpp"
#include "verbs.hpp"

namespace ballast::cli {
namespace {

using What = DiffReport::What;

struct Arguments {
  std::string a, b;
  double tolerance = 0;
  bool skip_values = false;
};

constexpr std::string_view name_of(What what) {
  switch (what) {
    case What::shape: return "shape";
    case What::dtype: return "dtype";
    case What::data: return "data";
    case What::values: return "values";
  }
  return "";
}

void write_change(JsonWriter& json, const DiffReport::Change& change) {
  json.begin_object();
  json.field("name", change.name);
  json.field("what", name_of(change.what));
  json.field("dtype_a", name(change.dtype_a));
  json.field("dtype_b", name(change.dtype_b));
  json.array_field("shape_a", change.shape_a);
  json.array_field("shape_b", change.shape_b);
  if (change.what == What::values) {
    json.field("different", change.different);
    json.field("max_abs", change.max_abs);
    json.field("max_rel", change.max_rel);
    json.field("nan_mismatch", change.nan_mismatch);
  }
  json.end();
}

void write_json(Session& session, const Arguments& arguments, const DiffReport& report) {
  JsonWriter json(session.out, "ballast.diff/1");
  json.field("a", arguments.a);
  json.field("b", arguments.b);
  json.field("equal", report.equal());
  for (const auto& [key, names] :
       {std::pair("only_in_a", &report.only_in_a), std::pair("only_in_b", &report.only_in_b)}) {
    json.key(key);
    json.begin_array(JsonWriter::Layout::lines);
    for (const std::string& name : *names) json.value(name);
    json.end();
  }
  json.key("changed");
  json.begin_array(JsonWriter::Layout::lines);
  for (const auto& change : report.changed) write_change(json, change);
  json.end();
  json.field("equal_tensors", report.equal_count);
  json.finish();
}

std::string describe(const Tensor& tensor) {
  return fmt::format("{} {}", name(tensor.dtype()), to_string(tensor.shape()));
}

std::string describe(const Terminal& screen, const DiffReport::Change& change) {
  if (change.what == What::shape)
    return fmt::format("shape {} → {}", to_string(change.shape_a), to_string(change.shape_b));
  if (change.what == What::dtype) return fmt::format("dtype {} → {}", name(change.dtype_a), name(change.dtype_b));
  if (change.what == What::data) return "only one side has data";
  if (change.compared != change.shape_a.numel())
    return fmt::format("{} of {} differ", screen.plural(change.different, "block"), screen.count(change.compared));
  std::string text =
      fmt::format("{} of {} differ, by at most {} (relative {})", screen.plural(change.different, "value"),
                  screen.count(change.compared), screen.number(change.max_abs), screen.number(change.max_rel));
  if (change.nan_mismatch != 0) text += fmt::format("; {} NaN on one side only", screen.count(change.nan_mismatch));
  return text;
}

void write_text(Session& session, const Checkpoint& a, const Checkpoint& b, const DiffReport& report) {
  const auto line = [&](Color color, char mark, const std::string& name, const std::string& what) {
    session.out.line(session.screen.paint(color, fmt::format("{} {}  {}", mark, escape_for_terminal(name), what)));
  };
  for (const auto& name : report.only_in_a) line(Color::red, '-', name, describe(a.at(name)));
  for (const auto& name : report.only_in_b) line(Color::green, '+', name, describe(b.at(name)));
  for (const auto& change : report.changed) line(Color::yellow, '~', change.name, describe(session.screen, change));
  if (session.quiet) return;
  if (report.equal()) {
    session.out.line(fmt::format("equal: {}", session.screen.plural(report.equal_count, "tensor")));
    return;
  }
  session.out.line(fmt::format("{} equal, {} only in A, {} only in B, {} changed",
                               session.screen.count(report.equal_count), session.screen.count(report.only_in_a.size()),
                               session.screen.count(report.only_in_b.size()),
                               session.screen.count(report.changed.size())));
}

int run_diff(Session& session, const Arguments& arguments) {
  if (arguments.a == "-" && arguments.b == "-")
    throw Error(Errc::invalid_argument, "standard input cannot be both sides").hint("name a file for one of them");
  if (!(arguments.tolerance >= 0))
    throw Error(Errc::invalid_argument, "--tolerance must be 0 or more").hint("for example --tolerance 1e-6");

  Checkpoint a = open_data(session, arguments.a);
  Checkpoint b = open_data(session, arguments.b);
  say_notes(session, a);
  say_notes(session, b);
  // A selection that leaves nothing on one side is a difference, not an error.
  Checkpoint sides[] = {select(a, session.selection), select(b, session.selection)};
  if (sides[0].size() + sides[1].size() > 0) say_unmatched(session, session.selection, {&a, &b});
  a = std::move(sides[0]);
  b = std::move(sides[1]);
  if (a.size() + b.size() == 0 && session.selection != Selection{})
    throw Error(Errc::not_found, "no tensor of either side is selected")
        .about("")
        .hint(Advice::mention(Remedy::ls) + " lists the names");

  auto bar = session.progress_bar();
  const DiffReport report = diff(a, b,
                                 {.values = !arguments.skip_values,
                                  .tolerance = arguments.tolerance,
                                  .threads = session.threads,
                                  .progress = bar.callback(),
                                  .limits = session.limits});
  bar.clear();
  session.json ? write_json(session, arguments, report) : write_text(session, a, b, report);
  return report.equal() ? 0 : info(Errc::mismatch).exit_code;
}

}  // namespace

void add_diff(Command& verb, Session& session) {
  auto arguments = std::make_shared<Arguments>();
  verb.positional("A", &arguments->a, "a checkpoint");
  verb.positional("B", &arguments->b, "another");
  verb.option("--tolerance", "X", &arguments->tolerance, "values that differ by at most this are equal");
  verb.flag("--no-values", &arguments->skip_values, "compare names, dtypes and shapes only");
  add_selection_options(verb, session);
  add_json_option(verb, session);
  verb.examples =
      "  ballast diff a.safetensors b.safetensors\n  ballast diff base/ tuned/ --include '*attn*' --tolerance 1e-6\n";
  verb.run = [arguments, &session] { return run_diff(session, *arguments); };
}

}  // namespace ballast::cli
