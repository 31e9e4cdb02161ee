// What a user can ask convert for.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <ballast/names.hpp>
#include <ballast/quantize.hpp>
#include <ballast/save.hpp>
#include <ballast/transform.hpp>

#include "../arguments.hpp"
#include "../gguf_flags.hpp"
#include "../session.hpp"

namespace ballast::cli {

struct ConvertFlags {
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

void add_convert_options(Command& verb, Session& session, ConvertFlags& flags);

// What the texts of --dtype and --quantize mean.
std::vector<CastRule> cast_rules(const ConvertFlags& flags);
std::optional<QuantizeOptions> quantize_options(const ConvertFlags& flags);

SaveOptions save_options(const Session& session, const ConvertFlags& flags);

}  // namespace ballast::cli
