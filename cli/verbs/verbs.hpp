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
    {"info", "what is this: format, tensors, parameters, dtypes, metadata, patterns", add_info},
    {"ls", "one tensor a line: name, dtype, shape, bytes", add_ls},
    {"cat", "the values of a tensor, or a slice of it, as text, JSON, NumPy or raw bytes", add_cat},
    {"stats", "min, max, mean, std, zeros, NaN, Inf, and a histogram", add_stats},
    {"hash", "a SHA-256 for each tensor and one for the whole, whatever the format or sharding", add_hash},
    {"scan", "every global that a pickle names, with a verdict; runs nothing", add_scan},
    {"verify", "check the structure, the index against its shards, every byte, a manifest", add_verify},
    {"check", "fit to ship: safe, complete, without NaN, and what config.json says; for CI", add_check},
    {"diff", "what differs between two checkpoints: names, dtypes, shapes, values", add_diff},
    {"view", "look at a checkpoint, or at the difference of two, in a browser or in one HTML file", add_view},
    {"meta", "read or edit metadata, in place where it fits", add_meta},
    {"convert", "copy, select, rename, cast and shard, streamed in bounded memory", add_convert},
    {"fetch", "everything that an address names, into the Hub's cache or a folder", add_fetch},
    {"plan", "which part of which tensor each rank of a parallel model needs, and where it lies", add_plan},
    {"adapter", "what fine-tuning adds to a model: look at it, take it out, put it in, convert it", add_adapter},
    {"imatrix", "importance matrices: how much each column of each weight matters to llama.cpp's types", add_imatrix},
    {"cache", "the conversion cache: where it is, what it holds, and how to clear it", add_cache},
    {"completion", "a completion script for bash, zsh or fish", add_completion},
};

}  // namespace ballast::cli
