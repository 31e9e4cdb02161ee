#include "options.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cctype>

#include <ballast/error.hpp>
#include <ballast/text.hpp>

namespace ballast::cli {
namespace {

struct LimitField {
  std::string_view name;
  std::uint64_t Limits::*field;
  std::string_view meaning;
};

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
    {"max_inflated_bytes", &Limits::max_inflated_bytes, "a compressed member that must be held whole"},
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
      .hint("ballast --limits lists them");
}

CLI::Option* one_value_each(CLI::Option* option) {
  return option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)->allow_extra_args(false);
}

}  // namespace

void add_common_options(CLI::App& app, Session& session) {
  app.add_flag("-q,--quiet", session.quiet, "only data and errors: no notes, no progress, no summaries");
  app.add_flag("-v,--verbose", session.verbose, "say more on stderr, and show long values whole");
  app.add_option_function<std::string>(
         "--color", [&session](const std::string& text) { session.color = color_mode(text); },
         "auto (on a terminal, unless NO_COLOR is set), always or never")
      ->type_name("WHEN");
  app.add_option("--threads", session.threads, "threads to use; 0, the default, is one a core")->type_name("N");
  app.add_option("--root", session.root, "take one subtree of a nested checkpoint, and drop its prefix")
      ->type_name("PATH");
  app.add_flag("--weights-only", session.weights_only, "refuse a pickle that torch.load(weights_only=True) refuses");
  app.add_flag("--single", session.single, "of a split GGUF, only the part that is named, not the whole set");
  app.add_flag("--lenient", session.lenient, "forgive what real files are known to get wrong, with a note for each");
  app.add_option_function<std::vector<std::string>>(
         "--limit",
         [&session](const std::vector<std::string>& texts) {
           for (const auto& text : texts) set_limit(session.limits, text);
         },
         "raise (or lower) one of the limits on input; see --limits")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->allow_extra_args(false)
      ->type_name("NAME=VALUE");
}

CLI::Option* add_target(CLI::App& verb, std::string& target) {
  return verb.add_option("TARGET", target, "a file, a folder, an …index.json, or - for standard input")->required();
}

void add_json_option(CLI::App& verb, Session& session) {
  verb.add_flag("--json", session.json, "one JSON document instead of text");
}

void add_selection_options(CLI::App& verb, Session& session) {
  add_repeated_option(verb, "--include", session.selection.include, "only tensors whose whole name matches")
      ->type_name("GLOB");
  add_repeated_option(verb, "--exclude", session.selection.exclude, "leave out tensors whose whole name matches")
      ->type_name("GLOB");
}

void add_force_option(CLI::App& verb, Session& session) {
  verb.add_flag("--force", session.force, "overwrite what is there");
}

void add_sync_option(CLI::App& verb, Session& session) {
  verb.add_flag_callback(
      "--no-sync", [&session] { session.sync = false; },
      "do not wait until the disk has it (still whole or not at all)");
}

CLI::Option* add_repeated_option(CLI::App& verb, const std::string& name, std::vector<std::string>& values,
                                 const std::string& description) {
  return one_value_each(verb.add_option(name, values, description)->expected(1));
}

CLI::Option* add_repeated_positional(CLI::App& verb, const std::string& name, std::vector<std::string>& values,
                                     const std::string& description) {
  // CLI11 splits an argument like "[ab]" at its commas wherever it allows extra arguments. Expecting very many instead,
  // and taking all that there are, leaves it whole.
  constexpr int kVeryMany = 1 << 20;
  return one_value_each(verb.add_option(name, values, description)->expected(kVeryMany));
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
  if (const auto bytes = parse_bytes(text)) return *bytes;
  throw Error(Errc::invalid_argument, fmt::format("{}: \"{}\" is no size", option, text))
      .hint("write a number and a unit, like 5GB, 64MiB or 4096");
}

DType dtype_argument(std::string_view option, std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::toupper(c); });
  if (const auto dtype = dtype_from_name(text)) return *dtype;

  std::vector<std::string_view> floating;
  for (const DTypeInfo& dtype : all_dtypes()) {
    if (dtype.kind == DTypeKind::floating) floating.push_back(dtype.name);
  }
  throw Error(Errc::invalid_argument, fmt::format("{}: there is no dtype \"{}\"", option, text))
      .hint(fmt::format("one of {}", fmt::join(floating, " ")));
}

std::string limits_text() {
  const Limits defaults;
  std::string text;
  for (const LimitField& limit : kLimits) {
    text += fmt::format("{:<20} {:>12}  {}\n", limit.name, defaults.*limit.field, limit.meaning);
  }
  return text;
}

}  // namespace ballast::cli
