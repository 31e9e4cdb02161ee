// adapter: LoRAs and the other adapters of PEFT.
#include <ballast/adapter.hpp>

#include <memory>
#include <optional>

#include <fmt/format.h>
#include <ballast/error.hpp>
#include <ballast/text.hpp>

#include "../options.hpp"
#include "../remedies.hpp"
#include "../save_job.hpp"
#include "adapter_verbs.hpp"
#include "verbs.hpp"

namespace ballast::cli {
namespace {

struct Arguments {
  std::string adapter, state, config, out, name = "default", dialect, subfolder, initial, dtype, embeddings = "auto";
  std::vector<std::string> key_mapping;
  std::uint64_t base_vocabulary = 0;
  NameOptions names;
  bool portable = false, ignore_mismatched = false, dry_run = false;
};

AdapterDialect dialect_argument(const std::string& text) {
  for (const AdapterDialect dialect :
       {AdapterDialect::peft, AdapterDialect::diffusers, AdapterDialect::kohya, AdapterDialect::gguf}) {
    if (text == name(dialect)) return dialect;
  }
  throw Error(Errc::invalid_argument, fmt::format("--to: there are no adapters of \"{}\"", text))
      .hint("peft, diffusers, kohya or gguf");
}

SaveEmbeddings embeddings_argument(const std::string& text) {
  if (text == "auto") return SaveEmbeddings::automatic;
  if (text == "always") return SaveEmbeddings::always;
  if (text == "never") return SaveEmbeddings::never;
  throw Error(Errc::invalid_argument, fmt::format("--save-embeddings: \"{}\" is none of auto, always and never", text));
}

void require_output(const Arguments& arguments) {
  if (!arguments.out.empty()) return;
  throw Error(Errc::invalid_argument, "nothing says where to write")
      .hint("name it with " + Advice::mention(Remedy::output));
}

Adapter open_adapter(const Session& session, const Arguments& arguments, const Checkpoint* base = nullptr) {
  AdapterLoadOptions options;
  options.subfolder = arguments.subfolder;
  for (const std::string& text : arguments.key_mapping) options.key_mapping.push_back(parse_rename(text));
  options.names = arguments.names;
  options.initial_adapter = arguments.initial;
  return open_adapter(session, arguments.adapter, base, std::move(options));
}

void say_notes(const Session& session, const Adapter& adapter) {
  for (const Note& note : adapter.notes)
    session.note(note.where.empty() ? text_of(note) : note.where + ": " + text_of(note));
  for (const AdapterProblem& problem : find_problems(adapter)) {
    if (problem.is_harmless)
      session.note(fmt::format("{}: {} ({})", adapter.source, problem.text, worded(problem.hint)));
  }
}

int run_info(Session& session, const Arguments& arguments) {
  const Adapter adapter = open_adapter(session, arguments);
  for (const Note& note : adapter.notes) session.note(text_of(note));
  show_info(session, adapter);
  return 0;
}

int write(Session& session, const Arguments& arguments, const SavePlan& plan, const SaveOptions& options,
          bool is_folder) {
  return write(session, {"ballast.adapter.write/1", arguments.out, is_folder, arguments.dry_run}, plan, options);
}

int write_adapter(Session& session, const Arguments& arguments, const Adapter& adapter, AdapterDialect dialect) {
  AdapterSaveOptions options;
  options.dialect = dialect;
  options.portable = arguments.portable;
  options.names = arguments.names;
  options.save = session.save_options(arguments.dry_run);
  const SavePlan plan = plan_save(adapter, arguments.out, options);
  return write(session, arguments, plan, options.save, dialect == AdapterDialect::peft);
}

int run_extract(Session& session, const Arguments& arguments) {
  require_output(arguments);
  if (arguments.config.empty()) {
    throw Error(Errc::invalid_argument, "nothing says what kind of adapter it is")
        .hint("name its adapter_config.json with --config");
  }
  const Checkpoint state = open_data(session, arguments.state);
  say_notes(session, state);
  Adapter adapter =
      extract_adapter(state, load_adapter_config(arguments.config), arguments.name,
                      {embeddings_argument(arguments.embeddings), arguments.base_vocabulary, session.allow_dangerous});
  if (!arguments.initial.empty())
    adapter = subtract_initial(std::move(adapter), open_adapter(session, arguments.initial, &state, {}));
  return write_adapter(session, arguments, adapter, AdapterDialect::peft);
}

// "3 tensors are missing, such as ..."
void note_names(const Session& session, const std::vector<std::string>& names, std::string_view what) {
  if (names.empty()) return;
  session.note(fmt::format("{} {}, such as \"{}\"", plural(names.size(), "tensor"), what, names.front()));
}

int run_inject(Session& session, const Arguments& arguments) {
  require_output(arguments);
  Checkpoint base = open_data(session, arguments.state);
  say_notes(session, base);
  if (!arguments.dtype.empty()) base = cast(std::move(base), dtype_argument("--dtype", arguments.dtype));
  const std::size_t said = base.notes.size();
  const Adapter adapter = open_adapter(session, arguments, &base);
  say_notes(session, adapter);
  const InjectedAdapter injected =
      inject_adapter(std::move(base), adapter, arguments.name,
                     {.ignore_mismatched_sizes = arguments.ignore_mismatched, .names = arguments.names});
  for (std::size_t i = said; i < injected.model.notes.size(); ++i) session.note(text_of(injected.model.notes[i]));
  note_names(session, injected.missing, "of the adapter missing");
  note_names(session, injected.unexpected, "left out that the base has no place for");
  note_names(session, injected.mismatched, "left out that the base has in another shape");
  const SaveOptions options = session.save_options(arguments.dry_run);
  return write(session, arguments, plan_save(injected.model, arguments.out, options), options, false);
}

int run_convert(Session& session, const Arguments& arguments) {
  require_output(arguments);
  const AdapterDialect dialect = dialect_argument(arguments.dialect);
  const std::optional<Checkpoint> base =
      arguments.state.empty() ? std::nullopt : std::optional(open_target(session, arguments.state));
  const Adapter adapter = open_adapter(session, arguments, base ? &*base : nullptr);
  say_notes(session, adapter);
  check_adapter(adapter);
  Arguments known = arguments;  // what the base says about itself
  if (base) known.names = for_base(*base, {.names = arguments.names, .open = session.open_options()}).names;
  return write_adapter(session, known, adapter, dialect);
}

void add_initial_option(Command& verb, Arguments& arguments) {
  verb.option("--initial-adapter", "ADAPTER", &arguments.initial,
              "of PiSSA, OLoRA and the like: the adapter before its training, which is subtracted");
}

void add_adapter_options(Command& verb, Session& session, Arguments& arguments) {
  verb.group("The adapter");
  verb.option("--subfolder", "NAME", &arguments.subfolder, "of the adapter's folder, where several lie in one");
  verb.option("--key-mapping", "REGEX=TEMPLATE", &arguments.key_mapping,
              "replace in the adapter's names, without base_model.model.; the first that matches counts");
  add_initial_option(verb, arguments);
  verb.flag("--allow-dangerous", &session.allow_dangerous, "go on although the file names something dangerous");
}

void add_output_options(Command& verb, Session& session, Arguments& arguments, std::string description) {
  verb.group("The output");
  verb.option("-o,--output", "PATH", &arguments.out, std::move(description));
  add_force_option(verb, session);
  verb.flag("--dry-run", &arguments.dry_run, "show what would be written, and write nothing");
  add_strict_option(verb, session);
  add_sync_option(verb, session);
  add_json_option(verb, session);
}

constexpr const char* kAdapterIs = "the folder that PEFT saved, or a file of diffusers, kohya, llama.cpp or MLX";

}  // namespace

Adapter open_adapter(const Session& session, const std::string& path, const Checkpoint* base,
                     AdapterLoadOptions options) {
  const OpenOptions usual = session.open_options();
  options.open.safety = usual.safety;
  options.open.limits = usual.limits;
  options.open.remote = usual.remote;
  if (base != nullptr) options = for_base(*base, std::move(options));
  options.allow_dangerous = session.allow_dangerous;
  return load_adapter(path, options);
}

void add_name_options(Command& verb, NameOptions& names) {
  verb.rare_group("GGUF");
  verb.option("--architecture", "NAME", &names.architecture, "for GGUF, where the file does not say it: llama");
  verb.option("--heads", "N", &names.head_count, "for GGUF: heads of attention");
  verb.option("--kv-heads", "N", &names.head_count_kv, "for GGUF: heads of keys and values");
}

void add_adapter(Command& verb, Session& session) {
  auto arguments = std::make_shared<Arguments>();

  Command& info = verb.verb("info", "type, rank, alpha, scaling, modules, dtypes, base, and what is wrong");
  info.positional("ADAPTER", &arguments->adapter, kAdapterIs);
  add_adapter_options(info, session, *arguments);
  add_name_options(info, arguments->names);
  info.group("The output");
  add_json_option(info, session);
  info.examples = "  ballast adapter info my-lora/\n  ballast adapter info style.safetensors --json\n";
  info.run = [arguments, &session] { return run_info(session, *arguments); };

  Command& extract = verb.verb("extract", "the adapter in an adapted model's checkpoint, as PEFT saves it");
  extract.positional("STATE", &arguments->state, "the checkpoint of the adapted model");
  extract.group("The adapter");
  extract.option("--config", "FILE", &arguments->config, "its adapter_config.json");
  extract.option("--name", "NAME", &arguments->name, "of the adapter; default where it is not given");
  extract.option("--save-embeddings", "WHEN", &arguments->embeddings,
                 "whether those of the base go along: auto (where they are adapted or resized), always or never");
  extract.option("--base-vocabulary", "N", &arguments->base_vocabulary,
                 "rows of the embeddings before training, to tell whether they were resized");
  add_initial_option(extract, *arguments);
  extract.flag("--portable", &arguments->portable, "names without base_model.model.");
  extract.flag("--allow-dangerous", &session.allow_dangerous, "go on although the file names something dangerous");
  add_output_options(extract, session, *arguments, "the folder to write");
  extract.examples = "  ballast adapter extract model.safetensors --config adapter_config.json -o my-lora\n";
  extract.run = [arguments, &session] { return run_extract(session, *arguments); };

  Command& inject = verb.verb("inject", "a base with an adapter in it, as the state dict of a PeftModel");
  inject.positional("BASE", &arguments->state, "the base, or a model that has adapters already");
  inject.positional("ADAPTER", &arguments->adapter, kAdapterIs);
  inject.group("The adapter");
  inject.option("--name", "NAME", &arguments->name, "of the adapter; default where it is not given");
  inject.option("--dtype", "DTYPE", &arguments->dtype, "cast the base, and decode ggml's blocks");
  inject.flag("--ignore-mismatched", &arguments->ignore_mismatched, "leave out what does not fit the base");
  add_adapter_options(inject, session, *arguments);
  add_name_options(inject, arguments->names);
  add_output_options(inject, session, *arguments, possible_outputs());
  inject.examples = "  ballast adapter inject base/ my-lora/ -o adapted.safetensors\n";
  inject.run = [arguments, &session] { return run_inject(session, *arguments); };

  Command& convert =
      verb.verb("convert", "for another program: PEFT, diffusers, kohya, llama.cpp; the scaling of every module stays");
  convert.positional("ADAPTER", &arguments->adapter, kAdapterIs);
  convert.group("The adapter");
  convert.option("--to", "PROGRAM", &arguments->dialect,
                 "whose names and shapes it gets: peft (a folder), diffusers, kohya or gguf (a file)");
  convert.option("--base", "TARGET", &arguments->state,
                 "the base: for kohya its names, which tell flat ones apart; for gguf its config.json");
  convert.flag("--portable", &arguments->portable, "for peft: names without base_model.model.");
  add_adapter_options(convert, session, *arguments);
  add_name_options(convert, arguments->names);
  add_output_options(convert, session, *arguments, "the folder or file to write");
  convert.examples = R"(  ballast adapter convert my-lora/ --to kohya -o my-lora.safetensors
  ballast adapter convert my-lora/ --to gguf --architecture llama --heads 32 -o my-lora.gguf
)";
  convert.run = [arguments, &session] { return run_convert(session, *arguments); };

  add_adapter_merge(verb, session);
  add_adapter_from_diff(verb, session);
}

}  // namespace ballast::cli
