#include "convert_changes.hpp"

#include <algorithm>
#include <iterator>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <ballast/densify.hpp>
#include <ballast/error.hpp>
#include <ballast/gguf_model.hpp>
#include <ballast/metadata_text.hpp>
#include <ballast/recipe.hpp>
#include <ballast/training.hpp>

#include "../beside.hpp"
#include "../maps.hpp"
#include "../options.hpp"
#include "../remedies.hpp"
#include "../training_note.hpp"

namespace ballast::cli {
namespace {

// A recipe chooses the type of every tensor.
void check_type_alone(const ConvertFlags& flags) {
  if (flags.gguf.has_type() && !flags.dtypes.empty())
    throw Error(Errc::invalid_argument, "--type chooses the types, and --dtype others")
        .hint("--tensor-type REGEX=TYPE makes an exception");
}

// A GGUF has blocks of its own.
void check_quantize(const ConvertFlags& flags) {
  if (flags.quantize.empty() || !flags.out.ends_with(".gguf")) return;
  throw Error(Errc::invalid_argument, "--quantize is for models that transformers loads, and a GGUF is for llama.cpp")
      .hint("--type Q4_K_M, or MXFP4_MOE, chooses the types of a GGUF");
}

// What only names need, and what only a model needs, says nothing elsewhere.
void check_model_options(const ConvertFlags& flags, bool is_model) {
  const NameOptions& names = flags.name_options;
  const bool has_names = !names.architecture.empty() || names.head_count != 0 || names.head_count_kv != 0;
  if (is_model && has_names)
    throw Error(Errc::invalid_argument, "--architecture, --heads and --kv-heads say what config.json says already")
        .hint("leave them out, or correct config.json");
  if (!is_model && has_names && (flags.names.empty() || flags.names == "keep"))
    throw Error(Errc::invalid_argument, "--architecture, --heads and --kv-heads are for names, which stay as they are")
        .hint("leave them out, or say which names it gets: --names hf, or --names gguf");
  if (!is_model && !flags.gguf.pre_tokenizer.empty())
    throw Error(Errc::invalid_argument, "--pre-tokenizer is for a model's folder that becomes a GGUF");
}

Checkpoint opened_model(const Session& session, const ConvertFlags& flags) {
  Checkpoint checkpoint = open_data(session, flags.in);
  say_notes(session, checkpoint);
  if (!flags.model_only) return checkpoint;
  const std::size_t said = checkpoint.notes.size();
  checkpoint = model_only(std::move(checkpoint));
  say_notes(session, std::span(checkpoint.notes).subspan(said));
  return checkpoint;
}

// Most people who convert a training checkpoint want the model in it.
void suggest_model(const Session& session, const ConvertFlags& flags, const Checkpoint& checkpoint) {
  if (flags.model_only || !is_training_checkpoint(checkpoint)) return;
  if (const auto note = training_note(flags.in, training_parts(checkpoint))) session.note(*note);
}

Checkpoint renamed(const ConvertFlags& flags, Checkpoint checkpoint) {
  std::vector<RenameRule> rules;
  for (const auto& text : flags.renames) rules.push_back(parse_rename(text));
  if (!rules.empty()) checkpoint = rename(std::move(checkpoint), rules);
  if (flags.strip_prefix) checkpoint = strip_prefix(std::move(checkpoint), *flags.strip_prefix);
  if (flags.add_prefix) checkpoint = add_prefix(std::move(checkpoint), *flags.add_prefix);
  return checkpoint;
}

NameStyle name_style(const std::string& text) {
  if (text == "hf") return NameStyle::huggingface;
  if (text == "gguf") return NameStyle::gguf;
  throw Error(Errc::invalid_argument, fmt::format("--names: there are no names of the style \"{}\"", text))
      .hint("hf for Hugging Face's, gguf for llama.cpp's, keep for those that there are");
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

// A folder gets the config.json of the model, too.
Checkpoint as_huggingface_model(const Session& session, const ConvertFlags& flags, const NameOptions& options,
                                Checkpoint checkpoint, Json& config) {
  if (is_folder(flags.out)) {
    HuggingFaceModel made = to_huggingface_model(std::move(checkpoint), options);
    config = std::move(made.config);
    return std::move(made.model);
  }
  if (!model_config_of(checkpoint).is_null())
    session.note("no config.json is written beside a single file; into a folder, NAME/, it is");
  return to_names(std::move(checkpoint), NameStyle::huggingface, options);
}

Checkpoint with_names(const Session& session, const ConvertFlags& flags, Checkpoint checkpoint, Json& config) {
  const NameStyle style = name_style(flags.names);
  NameOptions options = flags.name_options;
  if (style == NameStyle::huggingface) widen_what_is_cast(checkpoint, cast_rules(flags));
  const bool may_lack_numbers = style == NameStyle::gguf && checkpoint.typed_metadata.empty();
  if (may_lack_numbers) options = completed(std::move(options), checkpoint.target, session.open_options());
  if (style == NameStyle::huggingface && checkpoint.format == Format::gguf)
    return as_huggingface_model(session, flags, options, std::move(checkpoint), config);
  return to_names(std::move(checkpoint), style, options);
}

// A model's folder with one dtype for all has the type of that name: norms stay F32, as llama.cpp wants them.
GgufFlags with_plain_type(const ConvertFlags& flags) {
  GgufFlags types = flags.gguf;
  const std::vector<CastRule> rules = cast_rules(flags);
  constexpr DType kPlain[] = {DType::f32, DType::f16, DType::bf16};
  if (rules.size() == 1 && rules[0].glob == "*" && std::ranges::find(kPlain, rules[0].dtype) != std::end(kPlain))
    types.type = name(rules[0].dtype);
  return types;
}

Checkpoint with_values(const Session& session, const ConvertFlags& flags, Checkpoint checkpoint, bool is_model) {
  if (flags.dense) checkpoint = densify(std::move(checkpoint), session.limits);
  const GgufFlags types = is_model ? with_plain_type(flags) : flags.gguf;
  if (is_model || types.has_type()) checkpoint = with_types(session, types, std::move(checkpoint));
  if (!flags.dtypes.empty() && types.has_type() == flags.gguf.has_type()) {
    checkpoint = cast(std::move(checkpoint), cast_rules(flags));
    set_plain_file_type(checkpoint);
  }
  return checkpoint;
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
void change_metadata(const Session& session, Checkpoint& checkpoint, const ConvertFlags& flags) {
  const bool is_typed = has_typed_metadata(flags.out) || flags.raw;
  for (const auto& given : flags.metadata) {
    const std::string assigned = with_text_of_file(session, given);
    if (is_typed) {
      checkpoint.metadata.erase(assign(checkpoint.typed_metadata, assigned));
    } else {
      const auto [key, text] = text_assignment(assigned);
      checkpoint.typed_metadata.remove(key);
      checkpoint.metadata[key] = text;
    }
  }
  for (const auto& key : flags.removed_metadata) {
    const bool was_typed = checkpoint.typed_metadata.remove(key), was_text = checkpoint.metadata.erase(key) != 0;
    if (!was_typed && !was_text && key != "format")
      throw Error(Errc::not_found, fmt::format("no metadata called \"{}\"", key)).about(key);
  }
}

}  // namespace

Converted converted(const Session& session, const ConvertFlags& flags, bool takes_files_along) {
  check_type_alone(flags);
  check_quantize(flags);
  const std::optional<QuantizeOptions> scheme = quantize_options(flags);
  Converted result;
  Checkpoint checkpoint = opened_model(session, flags);
  if (takes_files_along) result.opened = checkpoint;
  const bool is_model = makes_gguf_model(session, flags.gguf, checkpoint, flags.out, flags.names);
  check_model_options(flags, is_model);
  checkpoint = select_tensors(session, std::move(checkpoint));
  suggest_model(session, flags, checkpoint);

  const std::size_t said = checkpoint.notes.size();
  checkpoint = with_maps(session, std::move(checkpoint), flags.map, flags.map_back);
  // transformers' own maps give names that config.json fits as well.
  if (takes_files_along && (is_map_of_transformers(flags.map) || is_map_of_transformers(flags.map_back)))
    result.opened.tensors = checkpoint.tensors;
  checkpoint = renamed(flags, std::move(checkpoint));
  if (is_model) checkpoint = as_gguf_model(session, flags.gguf, std::move(checkpoint));
  if (!is_model && !flags.names.empty() && flags.names != "keep")
    checkpoint = with_names(session, flags, std::move(checkpoint), result.config);
  checkpoint = with_values(session, flags, std::move(checkpoint), is_model);
  if (scheme) checkpoint = quantize(std::move(checkpoint), *scheme);
  if (scheme && !result.config.is_null()) result.config.set("quantization_config", checkpoint.quantization->config);
  for (std::size_t i = said; i < checkpoint.notes.size(); ++i) session.note(text_of(checkpoint.notes[i]));
  change_metadata(session, checkpoint, flags);
  result.checkpoint = std::move(checkpoint);
  return result;
}

}  // namespace ballast::cli
