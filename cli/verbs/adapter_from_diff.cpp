// adapter from-diff: a LoRA from two checkpoints.
#include <ballast/from_diff.hpp>

#include <filesystem>
#include <memory>

#include <fmt/format.h>
#include <ballast/error.hpp>
#include <ballast/save.hpp>
#include <ballast/text.hpp>

#include "../json_writer.hpp"
#include "../options.hpp"
#include "../save_job.hpp"
#include "../table.hpp"
#include "adapter_verbs.hpp"

namespace ballast::cli {
namespace {

struct Arguments {
  std::string base, tuned, out;
  std::uint64_t rank = 16;
  NameOptions names;
  bool fan_in_fan_out = false, dry_run = false;
};

void write_json(Session& session, const Arguments& arguments, const FromDiffReport& report) {
  JsonWriter json(session.out, "ballast.adapter.from-diff/1");
  json.field("rank", arguments.rank);
  json.field("dry_run", arguments.dry_run);
  json.key("layers");
  json.begin_array(JsonWriter::Layout::lines);
  for (const auto& layer : report.layers) {
    json.begin_object();
    json.field("name", layer.name);
    json.array_field("shape", layer.shape);
    json.field("rank", layer.rank);
    json.field("change", layer.change);
    json.field("error", layer.error);
    json.end();
  }
  json.end();
  json.array_field("left", report.left);
  json.array_field("missing", report.missing);
  json.field("unchanged", report.unchanged);
  json.finish();
}

void write_text(Session& session, const FromDiffReport& report) {
  Table table(session.out, session.screen,
              {{.narrowest = 40}, {.drop = 2}, {.right = true, .drop = 1}, {.right = true}, {.right = true}});
  table.header({"weight", "shape", "rank", "change", "error left"});
  for (const auto& layer : report.layers) {
    table.row({escape_for_terminal(layer.name), to_string(layer.shape), std::to_string(layer.rank),
               session.screen.number(100 * layer.change, 3) + "%", session.screen.number(100 * layer.error, 3) + "%"});
  }
  table.finish();
  session.out.flush();  // before the summary on stderr
  const auto note = [&](const std::vector<std::string>& names, std::string_view what) {
    if (!names.empty())
      session.note(fmt::format("{} {}, such as \"{}\"", plural(names.size(), "tensor"), what, names[0]));
  };
  note(report.left, "changed that no LoRA can hold");
  note(report.missing, "in only one of the two, or of another shape there");
}

int run_from_diff(Session& session, const Arguments& arguments) {
  if (arguments.out.empty() && !arguments.dry_run)
    throw Error(Errc::invalid_argument, "nothing says where to write")
        .hint("name a folder with " + Advice::mention(Remedy::output));
  if (!arguments.dry_run)
    refuse_existing(session, (std::filesystem::path(arguments.out) / "adapter_model.safetensors").string());
  const Checkpoint base = open_data(session, arguments.base), tuned = open_data(session, arguments.tuned);
  for (const Checkpoint* checkpoint : {&base, &tuned}) say_notes(session, *checkpoint);
  say_unmatched(session, session.selection, {&base, &tuned});
  auto bar = session.progress_bar();
  FromDiffOptions options;
  options.rank = arguments.rank;
  options.fan_in_fan_out = arguments.fan_in_fan_out;
  options.selection = session.selection;
  options.names = arguments.names;
  options.allow_dangerous = session.allow_dangerous;
  options.threads = session.threads;
  options.progress = bar.callback();
  for (const Checkpoint* checkpoint : {&base, &tuned}) {
    const Checkpoint compared = select(*checkpoint, session.selection);
    say_notes(session,
              checksum_notes(compared.tensors,
                             {.strict = session.strict, .threads = session.threads, .progress = options.progress}));
  }
  const FromDiff found = lora_from_diff(base, tuned, options);
  bar.clear();
  if (!arguments.dry_run) {
    AdapterSaveOptions save_options;
    save_options.save = session.save_options();
    OutputFolder folder(session, arguments.out, true);
    const SavePlan plan = plan_save(found.adapter, arguments.out, save_options);
    const SaveReport report = execute(plan, save_options.save);
    folder.keep();
    session.json ? write_json(session, arguments, found.report) : write_text(session, found.report);
    session.say(fmt::format("wrote {}: {} of rank {}, {}", arguments.out, plural(found.report.layers.size(), "module"),
                            arguments.rank, format_bytes(plan.total_bytes())));
    return 0;
  }
  session.json ? write_json(session, arguments, found.report) : write_text(session, found.report);
  return 0;
}

}  // namespace

void add_adapter_from_diff(Command& adapter, Session& session) {
  auto arguments = std::make_shared<Arguments>();
  Command& verb =
      adapter.verb("from-diff", "a LoRA of what changed between two checkpoints, and how much it leaves out");
  verb.positional("BASE", &arguments->base, "the model before training");
  verb.positional("TUNED", &arguments->tuned, "the model after it");
  verb.group("The LoRA");
  verb.option("--rank", "N", &arguments->rank, "of every matrix; 16 where it is not given");
  verb.flag("--fan-in-fan-out", &arguments->fan_in_fan_out, "matrices are [in, out], as GPT-2 has them");
  add_selection_options(verb, session);
  verb.flag("--allow-dangerous", &session.allow_dangerous, "go on although a file names something dangerous");
  add_name_options(verb, arguments->names);
  verb.group("The output");
  verb.option("-o,--output", "DIR", &arguments->out, "the folder to write");
  add_force_option(verb, session);
  verb.flag("--dry-run", &arguments->dry_run, "show the error of every layer, and write nothing");
  add_strict_option(verb, session);
  add_sync_option(verb, session);
  add_json_option(verb, session);
  verb.examples = "  ballast adapter from-diff base/ tuned/ --rank 32 -o my-lora\n";
  verb.run = [arguments, &session] { return run_from_diff(session, *arguments); };
}

}  // namespace ballast::cli
