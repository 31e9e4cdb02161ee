// The verbs. Each adds its arguments to the command line, and the function that runs after they are parsed.
#pragma once

#include <string_view>

#include "../arguments.hpp"
#include "../session.hpp"

namespace ballast::cli {

struct Verb {
  std::string_view name;
  std::string_view summary;
  void (*add)(Command& verb, Session& session);
};

void add_info(Command& verb, Session& session);
void add_ls(Command& verb, Session& session);
void add_cat(Command& verb, Session& session);
void add_stats(Command& verb, Session& session);
void add_hash(Command& verb, Session& session);
void add_scan(Command& verb, Session& session);
void add_verify(Command& verb, Session& session);
void add_check(Command& verb, Session& session);
void add_diff(Command& verb, Session& session);
void add_view(Command& verb, Session& session);
void add_meta(Command& verb, Session& session);
void add_convert(Command& verb, Session& session);
void add_fetch(Command& verb, Session& session);
void add_plan(Command& verb, Session& session);
void add_adapter(Command& verb, Session& session);
void add_imatrix(Command& verb, Session& session);
void add_cache(Command& verb, Session& session);
void add_completion(Command& verb, Session& session);

inline constexpr Verb kVerbs[] = {
    {"info", "what is this: format, parameters, dtypes, the model, metadata", add_info},
    {"ls", "one tensor a line: name, dtype, shape, bytes", add_ls},
    {"cat", "the values of a tensor or of a slice: text, JSON, NumPy, bytes", add_cat},
    {"stats", "min, max, mean, std, a histogram; or problems: NaN, Inf, zeros", add_stats},
    {"hash", "a SHA-256 for each tensor and one for all, whatever the format", add_hash},
    {"scan", "what a file would do to whoever loads it; runs nothing", add_scan},
    {"verify", "is anything missing or broken: structure, shards, bytes, digests", add_verify},
    {"check", "is it fit to ship: safe, complete, no NaN, as config.json says", add_check},
    {"diff", "what differs between two checkpoints: shapes, dtypes, values", add_diff},
    {"view", "a checkpoint, or the difference of two, in a browser or one file", add_view},
    {"meta", "read or edit metadata, in place where it fits", add_meta},
    {"convert", "copy, select, rename, cast and shard, streamed in bounded memory", add_convert},
    {"fetch", "what an address names, into the Hub's cache or a folder", add_fetch},
    {"plan", "which part of which tensor each rank of a parallel model needs", add_plan},
    {"adapter", "LoRAs and other adapters: look, take out, put in, merge, convert", add_adapter},
    {"imatrix", "what an importance matrix of llama.cpp holds", add_imatrix},
    {"cache", "the conversion cache: where it is, what it holds, clearing it", add_cache},
    {"completion", "a completion script for bash, zsh or fish", add_completion},
};

}  // namespace ballast::cli
