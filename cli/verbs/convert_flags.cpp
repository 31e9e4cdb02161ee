#include "convert_flags.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <ballast/error.hpp>

#include "../beside.hpp"
#include "../options.hpp"
#include "../save_job.hpp"

namespace ballast::cli {
namespace {

std::uint64_t shard_bytes(const std::string& text) {
  if (const std::uint64_t bytes = bytes_argument("--max-shard-size", text)) return bytes;
  throw Error(Errc::invalid_argument, "--max-shard-size: a shard has at least one byte")
      .hint("without the option everything goes into one file");
}

void add_tensor_options(Command& verb, Session& session, ConvertFlags& flags) {
  verb.group("Which tensors, under which names");
  add_selection_options(verb, session);
  verb.flag("--model-only", &flags.model_only, "of a training checkpoint, only the model");
  verb.option("--rename", "REGEX=TEMPLATE", &flags.renames, R"(replace in every name, \1 for groups; in order)");
  verb.option("--names", "STYLE", &flags.names, "names and values as hf or gguf has them; or keep");
  verb.rare_group("Names");
  verb.option("--strip-prefix", "TEXT", &flags.strip_prefix, "take this from the beginning of names");
  verb.option("--add-prefix", "TEXT", &flags.add_prefix, "put this before every name");
  verb.option("--map", "FILE", &flags.map,
              "rules that rename, fuse, split, stack, transpose: see docs/maps.md; before --rename. transformers: what "
              "from_pretrained does, by the model_type of config.json or transformers:TYPE");
  verb.option("--map-back", "FILE", &flags.map_back, "the same rules, the other way");
  verb.option("--architecture", "NAME", &flags.name_options.architecture,
              "for --names, where the file does not say it: llama");
  verb.option("--heads", "N", &flags.name_options.head_count, "for --names: heads of attention");
  verb.option("--kv-heads", "N", &flags.name_options.head_count_kv, "for --names: heads of keys and values");
}

void add_value_options(Command& verb, ConvertFlags& flags) {
  verb.group("Values");
  verb.option("--dtype", "[GLOB=]DTYPE", &flags.dtypes, "cast floats; decode ggml's blocks; encode: Q4_K");
  verb.option("--type", "TYPE", &flags.gguf.type,
              "a model that llama.cpp runs, with this recipe: Q4_K_M, IQ3_XS, …; auto, f32, f16, bf16, q8_0");
  verb.option("--quantize", "[GLOB=]SCHEME", &flags.quantize, "linear layers: fp8-block, nf4, nf4-double, mxfp4");
  verb.rare_group("llama.cpp");
  add_gguf_options(verb, flags.gguf);
  verb.rare_group("Storage");
  verb.flag("--dense", &flags.dense, "sparse tensors as dense ones, quantized ones as their values");
  verb.flag("--raw", &flags.raw, "ggml's blocks into safetensors as bytes, to become the same GGUF again");
  verb.flag("--dedupe", &flags.dedupe, "safetensors: tensors that share their bytes once, the other names agreed");
  verb.flag("--compress", &flags.compress, "safetensors: what shrinks as zstd frames, which ballast opens as it is");
  verb.flag("--keep-values", &flags.keep_values,
            "what stands beside the tensors of a pickle, such as an epoch, as JSON metadata");
}

void add_output_options(Command& verb, Session& session, ConvertFlags& flags) {
  verb.group("The output");
  verb.option("--max-shard-size", "SIZE", &flags.max_shard_size, "split into shards of at most this much");
  verb.option("--metadata,--meta", "KEY[:TYPE]=VALUE", &flags.metadata, "author=me; in a GGUF llama.block_count:u32=2");
  verb.option("--remove-metadata,--remove-meta", "KEY", &flags.removed_metadata, "leave metadata out");
  add_force_option(verb, session);
  verb.flag("--dry-run", &flags.dry_run, "show what would be written, and write nothing");
  add_json_option(verb, session);
  verb.rare_group("Writing");
  add_sidecars_option(verb, flags.no_sidecars);
  add_strict_option(verb, session);
  verb.flag("--verify", &flags.verify, "read everything back and compare, before anything is replaced");
  verb.option("--manifest", "FILE", &flags.manifest, "write down what every tensor is, for ballast verify --manifest");
  verb.flag("--allow-dangerous", &session.allow_dangerous, "go on although the file names something dangerous");
  verb.flag("--allow-empty", &flags.allow_empty, "write a file although there is no tensor to write");
  verb.option("--memory", "SIZE", &flags.memory, "for all buffers together; 64MiB by default");
  add_sync_option(verb, session);
}

}  // namespace

// A rule is a dtype ("BF16") or a glob with a dtype ("*.bias=F32").
std::vector<CastRule> cast_rules(const ConvertFlags& flags) {
  std::vector<CastRule> rules;
  for (const std::string& text : flags.dtypes) {
    const std::size_t equals = text.rfind('=');
    const bool has_glob = equals != std::string::npos;
    rules.push_back({has_glob ? text.substr(0, equals) : "*",
                     dtype_argument("--dtype", has_glob ? text.substr(equals + 1) : text)});
  }
  return rules;
}

// "nf4", or a glob with it ("*.mlp.*=nf4"): a model has one scheme.
std::optional<QuantizeOptions> quantize_options(const ConvertFlags& flags) {
  std::optional<QuantizeOptions> options;
  for (const std::string& text : flags.quantize) {
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
  if (options && !options->weights.empty() && options->weights.size() != flags.quantize.size())
    throw Error(Errc::invalid_argument, "--quantize: a scheme without a glob chooses the weights itself")
        .hint("leave it out beside the globs");
  return options;
}

SaveOptions save_options(const Session& session, const ConvertFlags& flags) {
  SaveOptions options = session.save_options(flags.dry_run);
  if (flags.max_shard_size) options.max_shard_bytes = shard_bytes(*flags.max_shard_size);
  options.allow_empty = flags.allow_empty;
  options.raw_blocks = flags.raw;
  options.name_framework = std::ranges::find(flags.removed_metadata, "format") == flags.removed_metadata.end();
  options.dedupe = flags.dedupe;
  options.keep_values = flags.keep_values;
  options.compress = flags.compress;
  options.verify = flags.verify;
  options.digests = !flags.manifest.empty();
  if (!flags.memory.empty()) options.memory_bytes = bytes_argument("--memory", flags.memory);
  return options;
}

void add_convert_options(Command& verb, Session& session, ConvertFlags& flags) {
  verb.positional("IN", &flags.in, "a file, a folder, an …index.json, or - for standard input");
  verb.positional("OUT", &flags.out, possible_outputs());
  add_tensor_options(verb, session, flags);
  add_value_options(verb, flags);
  add_output_options(verb, session, flags);
}

}  // namespace ballast::cli
