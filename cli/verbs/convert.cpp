// convert: opens, selects, renames and casts; then makes a plan and carries it out.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <ballast/densify.hpp>
#include <ballast/error.hpp>
#include <ballast/gguf_model.hpp>
#include <ballast/manifest.hpp>
#include <ballast/metadata_text.hpp>
#include <ballast/names.hpp>
#include <ballast/quantize.hpp>
#include <ballast/recipe.hpp>
#include <ballast/save.hpp>
#include <ballast/training.hpp>
#include <ballast/transform.hpp>

#include "../beside.hpp"
#include "../gguf_flags.hpp"
#include "../maps.hpp"
#include "../options.hpp"
#include "../remedies.hpp"
#include "../save_job.hpp"
#include "../training_note.hpp"
#include "verbs.hpp"

namespace ballast::cli {
namespace {

struct Arguments {
  std::string in, out;
  std::vector<std::string> renames, dtypes, quantize, metadata, removed_metadata;
  std::optional<std::string> strip_prefix, add_prefix, max_shard_size;
  std::string memory, manifest;
  std::string map, map_back;
  std::string names;  // "hf", "gguf" or "keep"
  GgufFlags gguf;
  NameOptions name_options;
  bool dense = false, raw = false, dry_run = false, model_only = false, no_sidecars = false;
  bool dedupe = false, keep_values = false, compress = false, verify = false, allow_empty = false;
};

NameStyle name_style(const std::string& text) {
  if (text == "hf") return NameStyle::huggingface;
  if (text == "gguf") return NameStyle::gguf;
  throw Error(Errc::invalid_argument, fmt::format("--names: there are no names of the style \"{}\"", text))
      .hint("hf for Hugging Face's, gguf for llama.cpp's, keep for those that there are");
}

// A rule is a dtype ("BF16") or a glob with a dtype ("*.bias=F32").
std::vector<CastRule> cast_rules(const std::vector<std::string>& texts) {
  std::vector<CastRule> rules;
  for (const std::string& text : texts) {
    const std::size_t equals = text.rfind('=');
    const bool has_glob = equals != std::string::npos;
    rules.push_back({has_glob ? text.substr(0, equals) : "*",
                     dtype_argument("--dtype", has_glob ? text.substr(equals + 1) : text)});
  }
  return rules;
}

// "nf4", or a glob with it ("*.mlp.*=nf4"): a model has one scheme.
std::optional<QuantizeOptions> quantize_options(const std::vector<std::string>& texts) {
  std::optional<QuantizeOptions> options;
  for (const std::string& text : texts) {
    const std::size_t equals = text.rfind('=');
    const std::string scheme = text.substr(equals + 1);
    const std::optional<WeightScheme> found = weight_scheme(scheme);
    if (!found) {
      throw Error(Errc::invalid_argument, fmt::format("--quantize: there is no scheme \"{}\"", scheme))
          .hint(fmt::format("one of {}", fmt::join(kWeightSchemeNames, ", ")));
    }
    if (options && options->scheme != *found)
      throw Error(Errc::invalid_argument, "--quantize: a model has one scheme").hint("give the same scheme each time");
    if (!options) options.emplace();
    options->scheme = *found;
    if (equals != std::string::npos) options->weights.push_back(text.substr(0, equals));
  }
  if (options && !options->weights.empty() && options->weights.size() != texts.size())
    throw Error(Errc::invalid_argument, "--quantize: a scheme without a glob chooses the weights itself")
        .hint("leave it out beside the globs");
  return options;
}

// llama.cpp's changes to values must be undone exactly: on the values that blocks stand for, before these are rounded
// again. A tensor that no rule casts stays as it is.
void widen_what_is_cast(Checkpoint& checkpoint, const std::vector<CastRule>& rules) {
  if (rules.empty()) return;
  Selection cast_ones;
  for (const CastRule& rule : rules) cast_ones.include.push_back(rule.glob);
  for (const auto& [name, tensor] : StateDict(checkpoint.tensors)) {
    const bool is_real = is_floating(tensor.dtype()) || info(tensor.dtype()).kind == DTypeKind::ggml;
    if (is_real && tensor.dtype() != DType::f64 && cast_ones.matches(name))
      checkpoint.tensors.replace(name, cast(checkpoint, name, DType::f32));
  }
}

bool has_typed_metadata(std::string_view out) {
  return std::ranges::any_of(output_formats(), [&](const OutputFormat& format) {
    return format.has_typed_metadata &&
           std::ranges::any_of(format.endings, [&](std::string_view ending) { return out.ends_with(ending); });
  });
}

TextAssignment text_assignment(const std::string& assigned) try {
  return parse_text_assignment(assigned);
} catch (Error& error) {
  const std::size_t equals = assigned.find('='), colon = assigned.rfind(':', equals);
  throw error.hint(fmt::format("leave the type out: --metadata {}{}", assigned.substr(0, colon),
                               assigned.substr(std::min(equals, assigned.size()))));
}

// A GGUF has typed metadata, every other format has texts. What is set is of the kind that the output has, whatever the
// input has under that key.
void change_metadata(const Session& session, Checkpoint& checkpoint, const Arguments& arguments) {
  const bool is_typed = has_typed_metadata(arguments.out) || arguments.raw;
  for (const auto& given : arguments.metadata) {
    const std::string assigned = with_text_of_file(session, given);
    if (is_typed) {
      checkpoint.metadata.erase(assign(checkpoint.typed_metadata, assigned));
    } else {
      const auto [key, text] = text_assignment(assigned);
      checkpoint.typed_metadata.remove(key);
      checkpoint.metadata[key] = text;
    }
  }
  for (const auto& key : arguments.removed_metadata) {
    const bool was_typed = checkpoint.typed_metadata.remove(key), was_text = checkpoint.metadata.erase(key) != 0;
    if (!was_typed && !was_text && key != "format")
      throw Error(Errc::not_found, fmt::format("no metadata called \"{}\"", key)).about(key);
  }
}

// A recipe chooses the type of every tensor.
void check_type_alone(const Arguments& arguments) {
  if (arguments.gguf.has_type() && !arguments.dtypes.empty())
    throw Error(Errc::invalid_argument, "--type chooses the types, and --dtype others")
        .hint("--tensor-type REGEX=TYPE makes an exception");
}

// A GGUF has blocks of its own.
void check_quantize(const Arguments& arguments) {
  if (arguments.quantize.empty() || !arguments.out.ends_with(".gguf")) return;
  throw Error(Errc::invalid_argument, "--quantize is for models that transformers loads, and a GGUF is for llama.cpp")
      .hint("--type Q4_K_M, or MXFP4_MOE, chooses the types of a GGUF");
}

// What only names need, and what only a model needs, says nothing elsewhere.
void check_model_options(const Arguments& arguments, bool is_model) {
  const NameOptions& names = arguments.name_options;
  const bool has_names = !names.architecture.empty() || names.head_count != 0 || names.head_count_kv != 0;
  if (is_model && has_names)
    throw Error(Errc::invalid_argument, "--architecture, --heads and --kv-heads say what config.json says already")
        .hint("leave them out, or correct config.json");
  if (!is_model && !arguments.gguf.pre_tokenizer.empty())
    throw Error(Errc::invalid_argument, "--pre-tokenizer is for a model's folder that becomes a GGUF");
}

// A model's folder with one dtype for all has the type of that name: norms stay F32, as llama.cpp wants them.
GgufFlags with_plain_type(const Arguments& arguments) {
  GgufFlags flags = arguments.gguf;
  const std::vector<CastRule> rules = cast_rules(arguments.dtypes);
  constexpr DType kPlain[] = {DType::f32, DType::f16, DType::bf16};
  if (rules.size() == 1 && rules[0].glob == "*" && std::ranges::find(kPlain, rules[0].dtype) != std::end(kPlain))
    flags.type = name(rules[0].dtype);
  return flags;
}

// A folder gets the config.json of the model, too.
Checkpoint as_huggingface_model(const Session& session, const Arguments& arguments, const NameOptions& options,
                                Checkpoint checkpoint, Json& config) {
  if (is_folder(arguments.out)) {
    HuggingFaceModel made = to_huggingface_model(std::move(checkpoint), options);
    config = std::move(made.config);
    return std::move(made.model);
  }
  if (!model_config_of(checkpoint).is_null())
    session.note("no config.json is written beside a single file; into a folder, NAME/, it is");
  return to_names(std::move(checkpoint), NameStyle::huggingface, options);
}

Checkpoint with_names(const Session& session, const Arguments& arguments, Checkpoint checkpoint, Json& config) {
  const NameStyle style = name_style(arguments.names);
  NameOptions options = arguments.name_options;
  if (style == NameStyle::huggingface) widen_what_is_cast(checkpoint, cast_rules(arguments.dtypes));
  const bool may_lack_numbers = style == NameStyle::gguf && checkpoint.typed_metadata.empty();
  if (may_lack_numbers) options = completed(std::move(options), checkpoint.target, session.open_options());
  if (style == NameStyle::huggingface && checkpoint.format == Format::gguf)
    return as_huggingface_model(session, arguments, options, std::move(checkpoint), config);
  return to_names(std::move(checkpoint), style, options);
}

// Most people who convert a training checkpoint want the model in it.
void suggest_model(const Session& session, const Arguments& arguments, const Checkpoint& checkpoint) {
  if (arguments.model_only || !is_training_checkpoint(checkpoint)) return;
  if (const auto note = training_note(arguments.in, training_parts(checkpoint))) session.note(*note);
}

struct Wanted {
  Checkpoint opened;      // as it was opened; empty if nobody asks what lay beside it
  Checkpoint checkpoint;  // what is written
  Json config;            // what becomes config.json; null if nothing does
};

Checkpoint opened_model(const Session& session, const Arguments& arguments) {
  Checkpoint checkpoint = open_data(session, arguments.in);
  say_notes(session, checkpoint);
  if (!arguments.model_only) return checkpoint;
  const std::size_t said = checkpoint.notes.size();
  checkpoint = model_only(std::move(checkpoint));
  say_notes(session, std::span(checkpoint.notes).subspan(said));
  return checkpoint;
}

Wanted wanted_checkpoint(const Session& session, const Arguments& arguments, bool takes_files_along) {
  check_type_alone(arguments);
  check_quantize(arguments);
  const std::optional<QuantizeOptions> scheme = quantize_options(arguments.quantize);
  Wanted wanted;
  Checkpoint checkpoint = opened_model(session, arguments);
  if (takes_files_along) wanted.opened = checkpoint;
  const bool is_model = makes_gguf_model(session, arguments.gguf, checkpoint, arguments.out, arguments.names);
  check_model_options(arguments, is_model);
  checkpoint = select_tensors(session, std::move(checkpoint));
  suggest_model(session, arguments, checkpoint);

  const std::size_t said = checkpoint.notes.size();
  checkpoint = with_maps(session, std::move(checkpoint), arguments.map, arguments.map_back);
  std::vector<RenameRule> rules;
  for (const auto& text : arguments.renames) rules.push_back(parse_rename(text));
  if (!rules.empty()) checkpoint = rename(std::move(checkpoint), rules);
  if (arguments.strip_prefix) checkpoint = strip_prefix(std::move(checkpoint), *arguments.strip_prefix);
  if (arguments.add_prefix) checkpoint = add_prefix(std::move(checkpoint), *arguments.add_prefix);
  if (is_model) checkpoint = as_gguf_model(session, arguments.gguf, std::move(checkpoint));
  if (!is_model && !arguments.names.empty() && arguments.names != "keep")
    checkpoint = with_names(session, arguments, std::move(checkpoint), wanted.config);
  if (arguments.dense) checkpoint = densify(std::move(checkpoint), session.limits);
  const GgufFlags types = is_model ? with_plain_type(arguments) : arguments.gguf;
  if (is_model || types.has_type()) checkpoint = with_types(session, types, std::move(checkpoint));
  if (!arguments.dtypes.empty() && types.has_type() == arguments.gguf.has_type()) {
    checkpoint = cast(std::move(checkpoint), cast_rules(arguments.dtypes));
    set_plain_file_type(checkpoint);
  }
  if (scheme) checkpoint = quantize(std::move(checkpoint), *scheme);
  if (scheme && !wanted.config.is_null()) wanted.config.set("quantization_config", checkpoint.quantization->config);
  for (std::size_t i = said; i < checkpoint.notes.size(); ++i) session.note(text_of(checkpoint.notes[i]));
  change_metadata(session, checkpoint, arguments);
  wanted.checkpoint = std::move(checkpoint);
  return wanted;
}

std::uint64_t shard_bytes(const std::string& text) {
  if (const std::uint64_t bytes = bytes_argument("--max-shard-size", text)) return bytes;
  throw Error(Errc::invalid_argument, "--max-shard-size: a shard has at least one byte")
      .hint("without the option everything goes into one file");
}

SaveOptions save_options(const Session& session, const Arguments& arguments) {
  SaveOptions options = session.save_options();
  if (arguments.max_shard_size) options.max_shard_bytes = shard_bytes(*arguments.max_shard_size);
  options.allow_empty = arguments.allow_empty;
  options.raw_blocks = arguments.raw;
  options.name_framework = std::ranges::find(arguments.removed_metadata, "format") == arguments.removed_metadata.end();
  options.dedupe = arguments.dedupe;
  options.keep_values = arguments.keep_values;
  options.compress = arguments.compress;
  options.verify = arguments.verify;
  options.digests = !arguments.manifest.empty();
  if (!arguments.memory.empty()) options.memory_bytes = bytes_argument("--memory", arguments.memory);
  return options;
}

// All of a checkpoint is often the model, under a name of its own.
void suggest_root(const Session& session, const Checkpoint& checkpoint) {
  if (checkpoint.roots.empty() || checkpoint.roots[0].tensors != checkpoint.size()) return;
  const std::string& root = checkpoint.roots[0].path;
  session.note(worded(fmt::format("all tensors lie under \"{}\"; {} takes them without that prefix", root,
                                  Advice::mention(Remedy::root, root))));
}

// Without its configuration, nobody can load such a model.
void say_quantization_config(const Session& session, const Arguments& arguments, const Checkpoint& checkpoint,
                             const SavePlan& plan) {
  if (arguments.quantize.empty()) return;
  const auto is_config = [](const SavePlan::File& file) {
    return std::filesystem::path(file.path).filename() == "config.json";
  };
  if (std::ranges::any_of(plan.files, is_config)) return;
  session.note(fmt::format("the config.json of this model needs \"quantization_config\": {}",
                           to_string(checkpoint.quantization->config)));
}

// The manifest is written last, and would overwrite the file that it describes.
void check_manifest_path(const Session& session, const Checkpoint& checkpoint, const SavePlan& plan,
                         const std::string& manifest) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const fs::path own = fs::weakly_canonical(manifest, ignored);
  const auto refuse = [&](const std::string& path) {
    if (fs::weakly_canonical(path, ignored) == own)
      throw Error(Errc::invalid_argument, "the manifest and the checkpoint are the same file")
          .in(path)
          .hint("give --manifest a name of its own");
  };
  for (const auto& file : plan.files) refuse(file.path);
  for (const auto& file : checkpoint.files) refuse(file.path);
  refuse_existing(session, manifest);
}

int run_convert(Session& session, const Arguments& arguments) {
  if (arguments.out == "-") {
    throw Error(Errc::invalid_argument, "a checkpoint cannot be written to standard output")
        .hint("name a file or a folder; " + Advice::mention(Remedy::cat) + " streams one tensor");
  }
  SaveOptions options = save_options(session, arguments);
  const bool takes_files_along = !arguments.no_sidecars && takes_sidecars(arguments.out, options);
  Wanted wanted = wanted_checkpoint(session, arguments, takes_files_along);
  const Checkpoint& checkpoint = wanted.checkpoint;
  suggest_root(session, checkpoint);
  if (arguments.keep_values && checkpoint.values.empty())
    session.note("--keep-values: nothing stands beside the tensors" +
                 (session.root.empty() ? std::string() : fmt::format(" below \"{}\"", session.root)));
  auto planning = session.progress_bar();  // compressing is measured while planning
  options.progress = planning.callback();
  SavePlan plan = plan_save(checkpoint, arguments.out, options);
  add_model_config(plan, std::move(wanted.config));
  if (takes_files_along) take_sidecars(session, plan, wanted.opened, checkpoint, arguments.dry_run);
  planning.clear();
  say_quantization_config(session, arguments, checkpoint, plan);
  if (arguments.dry_run) {
    say_notes(session, plan.notes);
    if (!session.json && arguments.out.ends_with(".gguf")) show_types(session, plan);
    show_plan(session, "ballast.convert/1", plan);
    return 0;
  }

  if (!arguments.manifest.empty()) check_manifest_path(session, checkpoint, plan, arguments.manifest);
  auto bar = session.progress_bar();
  options.progress = bar.callback();
  OutputFolder folder(session, arguments.out);
  const SaveReport report = execute(plan, options);
  folder.keep();
  if (!arguments.manifest.empty()) {
    const ManifestOptions manifest_options{options.threads, options.progress, options.limits, session.team};
    save_manifest(make_manifest(checkpoint, report.digests, manifest_options), arguments.manifest, options);
  }
  bar.clear();
  say_notes(session, report.notes);
  say_written(session, "ballast.convert/1", plan, report);
  return 0;
}

}  // namespace

void add_convert(Command& verb, Session& session) {
  auto arguments = std::make_shared<Arguments>();
  verb.positional("IN", &arguments->in, "a file, a folder, an …index.json, or - for standard input");
  verb.positional("OUT", &arguments->out, possible_outputs() + " (one that is there, or NAME/)");
  verb.group("Which tensors, under which names");
  add_selection_options(verb, session);
  verb.option("--rename", "REGEX=TEMPLATE", &arguments->renames, R"(replace in every name, \1 for groups; in order)");
  verb.option("--map", "FILE", &arguments->map,
              "rules that rename, fuse, split, stack, transpose: see docs/maps.md; before --rename. transformers: what "
              "from_pretrained does, by the model_type of config.json or transformers:TYPE");
  verb.option("--map-back", "FILE", &arguments->map_back, "the same rules, the other way");
  verb.option("--names", "STYLE", &arguments->names,
              "names (and what goes with them) as Hugging Face or llama.cpp has them: hf, gguf; or keep");
  verb.option("--architecture", "NAME", &arguments->name_options.architecture,
              "for --names, where the file does not say it: llama");
  verb.option("--heads", "N", &arguments->name_options.head_count, "for --names: heads of attention");
  verb.option("--kv-heads", "N", &arguments->name_options.head_count_kv, "for --names: heads of keys and values");
  verb.group("For llama.cpp");
  add_gguf_options(verb, arguments->gguf);
  verb.group("Which tensors, under which names");
  verb.option("--strip-prefix", "TEXT", &arguments->strip_prefix, "take this from the beginning of names");
  verb.option("--add-prefix", "TEXT", &arguments->add_prefix, "put this before every name");
  verb.group("Values");
  verb.option("--dtype", "[GLOB=]DTYPE", &arguments->dtypes,
              "cast floating tensors, or those that GLOB matches; decode ggml's blocks; encode: Q4_K");
  verb.option("--quantize", "[GLOB=]SCHEME", &arguments->quantize,
              "linear layers, or what GLOB matches, as transformers has them: fp8-block, nf4, mxfp4");
  verb.flag("--model-only", &arguments->model_only,
            "of a training checkpoint only the model, under its own names; not the optimizer's state");
  verb.flag("--dense", &arguments->dense, "sparse tensors as dense ones, quantized ones as their values");
  verb.flag("--raw", &arguments->raw, "ggml's blocks into safetensors as bytes, to become the same GGUF again");
  verb.flag("--dedupe", &arguments->dedupe, "safetensors: tensors that share their bytes once, the other names agreed");
  verb.flag("--keep-values", &arguments->keep_values,
            "what stands beside the tensors of a pickle, such as an epoch, as JSON metadata");
  verb.flag("--compress", &arguments->compress,
            "safetensors: what shrinks as zstd frames, which ballast opens as it is");
  verb.group("The output");
  verb.option("--max-shard-size", "SIZE", &arguments->max_shard_size, "split into shards of at most this much");
  verb.option("--metadata,--meta", "KEY[:TYPE]=VALUE", &arguments->metadata,
              "set metadata: author=me; with a type in a GGUF: llama.block_count:u32=2");
  verb.option("--remove-metadata,--remove-meta", "KEY", &arguments->removed_metadata, "leave metadata out");
  verb.option("--memory", "SIZE", &arguments->memory, "for all buffers together; 64MiB by default");
  verb.flag("--allow-dangerous", &session.allow_dangerous, "go on although the file names something dangerous");
  add_strict_option(verb, session);
  add_sidecars_option(verb, arguments->no_sidecars);
  verb.flag("--allow-empty", &arguments->allow_empty, "write a file although there is no tensor to write");
  add_force_option(verb, session);
  verb.flag("--verify", &arguments->verify, "read everything back and compare, before anything is replaced");
  verb.option("--manifest", "FILE", &arguments->manifest,
              "write down what every tensor is, for ballast verify --manifest");
  verb.flag("--dry-run", &arguments->dry_run, "show what would be written, and write nothing");
  add_sync_option(verb, session);
  add_json_option(verb, session);
  verb.examples = R"(  ballast convert model/ one.safetensors
  ballast convert model.safetensors half/ --dtype BF16 --max-shard-size 5GB
  ballast convert a.safetensors b.safetensors --rename '^model\.=' --exclude '*.bias'
  ballast convert Llama-3.2-1B/ model.gguf --type Q4_K_M --imatrix imatrix.gguf
)";
  verb.run = [arguments, &session] { return run_convert(session, *arguments); };
}

}  // namespace ballast::cli
