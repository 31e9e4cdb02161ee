#include "options.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cctype>

#include <ballast/error.hpp>
#include <ballast/metadata.hpp>
#include <ballast/suggest.hpp>
#include <ballast/text.hpp>

#include "wrap.hpp"

namespace ballast::cli {
namespace {

constexpr LimitField kLimits[] = {
    {"max_header_bytes", &Limits::max_header_bytes, "a safetensors header"},
    {"max_index_bytes", &Limits::max_index_bytes, "an index.json"},
    {"max_tensors", &Limits::max_tensors, "tensors in a checkpoint"},
    {"max_rank", &Limits::max_rank, "dimensions of one tensor"},
    {"max_json_depth", &Limits::max_json_depth, "nesting of a JSON document"},
    {"max_shards", &Limits::max_shards, "files of a checkpoint"},
    {"max_metadata_keys", &Limits::max_metadata_keys, "keys of metadata"},
    {"max_archive_members", &Limits::max_archive_members, "members of a zip or a tar"},
    {"max_archive_depth", &Limits::max_archive_depth, "archives and checkpoints inside each other"},
    {"max_inflated_bytes", &Limits::max_inflated_bytes, "a compressed member that must be held in memory"},
    {"max_pickle_bytes", &Limits::max_pickle_bytes, "a pickle, without the large strings in it"},
    {"max_pickle_nodes", &Limits::max_pickle_nodes, "objects in one pickle"},
    {"max_values", &Limits::max_values, "plain values that are kept for showing"},
    {"max_expansion_bytes", &Limits::max_expansion_bytes, "what repeated views may add to the input's bytes, or"},
    {"max_expansion_ratio", &Limits::max_expansion_ratio, "how many times the input they may be, if that is more"},
};

ColorMode color_mode(const std::string& text) {
  if (text == "auto") return ColorMode::automatic;
  if (text == "always") return ColorMode::always;
  if (text == "never") return ColorMode::never;
  throw Error(Errc::invalid_argument, fmt::format("--color {} is not a choice", text))
      .hint("use --color=auto, --color=always or --color=never");
}

void set_limit(Limits& limits, const std::string& text) {
  const auto [name, value] = split_assignment(text, "--limit max_header_bytes=200MB");
  for (const LimitField& limit : kLimits) {
    if (limit.name == name) return void(limits.*limit.field = bytes_argument("--limit " + name, value));
  }
  throw Error(Errc::invalid_argument, fmt::format("there is no limit called \"{}\"", name))
      .hint(Advice::mention(Remedy::limits) + " lists them");
}

void set_block_endian(Session& session, const std::string& text) {
  if (text != "big" && text != "little") {
    throw Error(Errc::invalid_argument, fmt::format("--block-endian: \"{}\" is no order of bytes", text))
        .hint("big or little");
  }
  session.little_endian_blocks = text == "little";
}

}  // namespace

void add_common_options(Command& root, Session& session) {
  root.rare_group("Of every verb");
  root.flag("-q,--quiet", &session.quiet, "only data and errors: no notes, no progress, no summaries");
  root.flag("-v,--verbose", &session.verbose, "say more on stderr, and show long values in full");
  root.option(
      "--color", "WHEN", [&session](const std::string& text) { session.color = color_mode(text); },
      "auto (on a terminal, unless NO_COLOR is set), always or never");
  root.option("--threads", "N", &session.threads, "threads to use; 0, the default, is one a core");
  root.option("--root", "PATH", &session.root,
              "of a dictionary in the file's dictionary, only what is under its key: state_dict");
  root.flag("--weights-only", &session.weights_only, "refuse a pickle that torch.load refuses with weights_only=True");
  root.flag("--single", &session.single, "of a split GGUF, only the part that is named, not all parts");
  root.option(
      "--block-endian", "ORDER", [&session](const std::string& text) { set_block_endian(session, text); },
      "of the blocks in a big-endian GGUF: big, the default, or little");
  root.flag("--cache", &session.make_cache,
            "first convert what cannot be used as it lies, for this time and later ones");
  root.flag("--cache-all", &session.cache_all, "the same for everything that is not safetensors already");
  root.flag("--compress-cache", &session.compress_cache, "compress a cache that is made");
  root.flag("--no-cache", &session.ignore_cache, "do not look for a cache, nor make one");
  root.flag("--dequantize", &session.dequantize,
            "weights that are kept quantized (GPTQ, AWQ, NF4, FP8, …) as their numbers");
  root.flag("--lenient", &session.lenient, "forgive what real files are known to get wrong, with a note for each");
  root.option(
      "--limit", "NAME=VALUE",
      [&session](const std::vector<std::string>& texts) {
        for (const auto& text : texts) set_limit(session.limits, text);
      },
      "raise (or lower) one of the limits on input; see --limits");
  add_remote_options(root, session.remote);
}

void add_target(Command& verb, std::string& target) {
  verb.positional("TARGET", &target, "a file, a folder, an index, https://, hf://, s3://, or - for stdin");
}

void add_json_option(Command& verb, Session& session) {
  verb.flag("--json", &session.json, "one JSON document instead of text");
}

void add_selection_options(Command& verb, Session& session) {
  verb.option("--include", "GLOB", &session.selection.include, "whole names that match: * ? [a-z] {a,b} {0..31}");
  verb.option("--exclude", "GLOB", &session.selection.exclude, "leave out tensors whose whole name matches");
}

void add_force_option(Command& verb, Session& session) {
  verb.flag("--force", &session.force, "overwrite what is there");
}

void add_strict_option(Command& verb, Session& session) {
  verb.flag("--strict", &session.strict,
            "write nothing where values would be lost or checksums are wrong, instead of a note");
}

void add_sync_option(Command& verb, Session& session) {
  verb.flag("--no-sync", &session.skip_sync,
            "do not wait until the disk has it (a file still appears complete or not at all)");
}

std::string with_text_of_file(const Session& session, const std::string& assignment) {
  const std::size_t at = assignment.find("=@");
  if (session.host != nullptr || at == std::string::npos || assignment.find('=') != at) return assignment;
  const std::string before = assignment.substr(0, at + 1), value = assignment.substr(at + 2);
  if (value.starts_with('@')) return before + value;
  if (value.empty()) throw Error(Errc::invalid_argument, "no file stands behind the @").hint("write KEY=@FILE");
  try {
    return before + read_metadata_text(value, session.limits);
  } catch (Error& error) {
    if (error.code() != Errc::not_found && error.code() != Errc::io) throw;
    throw error.hint(fmt::format("a text that begins with @ is written with two: {}@@{}", before, value));
  }
}

std::pair<std::string, std::string> split_assignment(const std::string& text, std::string_view example) {
  const auto equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw Error(Errc::invalid_argument, fmt::format("\"{}\" is no KEY=VALUE", text))
        .hint(fmt::format("write it like {}", example));
  }
  return {text.substr(0, equals), text.substr(equals + 1)};
}

std::uint64_t bytes_argument(std::string_view option, const std::string& text) {
  const bool is_short = !text.empty() && std::string_view("kKmMgGtT").find(text.back()) != std::string_view::npos;
  if (const auto bytes = parse_bytes(is_short ? text + "iB" : text)) return *bytes;
  throw Error(Errc::invalid_argument, fmt::format("{}: \"{}\" is no size", option, text))
      .hint("write a number and a unit, like 5GB, 64MiB or 4096; 512K is 512KiB");
}

DType dtype_argument(std::string_view option, const std::string& text) {
  if (const auto dtype = parse_dtype(text)) return *dtype;
  std::vector<std::string_view> names;
  for (const DTypeInfo& dtype : all_dtypes()) {
    names.push_back(dtype.name);
    if (!dtype.torch_name.empty()) names.push_back(dtype.torch_name);
  }
  std::string upper = text;
  std::transform(upper.begin(), upper.end(), upper.begin(), [](unsigned char c) { return std::toupper(c); });
  auto near = nearest(text, names);
  if (!near) near = nearest(upper, names);
  throw Error(Errc::invalid_argument, fmt::format("{}: there is no dtype \"{}\"", option, text))
      .hint(fmt::format("{}one of {}; or, to convert, a type of ggml: Q8_0 Q4_K …",
                        near ? fmt::format("did you mean {}? It is ", *near) : "", fmt::join(cast_targets(), " ")));
}

std::vector<std::string> cast_targets() {
  std::vector<std::string> names;
  for (const DTypeInfo& dtype : all_dtypes()) {
    const bool is_scale = dtype.name == "F8_E8M0";  // its values are powers of two without a zero
    if (dtype.kind == DTypeKind::floating && dtype.in_safetensors && dtype.block_elements == 1 && !is_scale)
      names.emplace_back(dtype.name);
  }
  return names;
}

std::span<const LimitField> limit_fields() { return kLimits; }

std::string limits_text(const Terminal& terminal) {
  const Limits defaults;
  std::string text;
  for (const LimitField& limit : kLimits) {
    const std::string label = fmt::format("{:<20} {:>12}  ", limit.name, defaults.*limit.field);
    text += labelled(terminal, label, limit.meaning) + "\n";
  }
  return text;
}

}  // namespace ballast::cli
