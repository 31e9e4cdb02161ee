// The verbs: each adds its arguments to the command line and gives back what to run once they are parsed.
#pragma once

#include <functional>
#include <span>
#include <string_view>

#include <CLI/CLI.hpp>

#include "../session.hpp"

namespace ballast::cli {

using Run = std::function<int()>;  // the exit code

struct Verb {
  std::string_view name;
  std::string_view summary;
  Run (*add)(CLI::App& verb, Session& session);
};

Run add_info(CLI::App& verb, Session& session);
Run add_ls(CLI::App& verb, Session& session);
Run add_cat(CLI::App& verb, Session& session);
Run add_stats(CLI::App& verb, Session& session);
Run add_hash(CLI::App& verb, Session& session);
Run add_scan(CLI::App& verb, Session& session);
Run add_verify(CLI::App& verb, Session& session);
Run add_diff(CLI::App& verb, Session& session);
Run add_meta(CLI::App& verb, Session& session);
Run add_convert(CLI::App& verb, Session& session);
Run add_completion(CLI::App& verb, Session& session);

inline constexpr Verb kVerbs[] = {
    {"info", "what is this: format, tensors, parameters, dtypes, metadata, patterns", add_info},
    {"ls", "one tensor a line: name, dtype, shape, bytes", add_ls},
    {"cat", "the values of a tensor, or a slice of it, as text, JSON, NumPy or raw bytes", add_cat},
    {"stats", "min, max, mean, std, zeros, NaN, Inf, and a histogram", add_stats},
    {"hash", "a SHA-256 for each tensor and one for the whole, whatever the format or sharding", add_hash},
    {"scan", "every global that a pickle names, with a verdict; runs nothing", add_scan},
    {"verify", "check the structure, the index against its shards, every byte, a manifest", add_verify},
    {"diff", "what differs between two checkpoints: names, dtypes, shapes, values", add_diff},
    {"meta", "read or edit metadata, in place where it fits", add_meta},
    {"convert", "copy, select, rename, cast and shard, streamed in bounded memory", add_convert},
    {"completion", "a completion script for bash, zsh or fish", add_completion},
};

}  // namespace ballast::cli
