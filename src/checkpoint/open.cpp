#include <ballast/error.hpp>
#include <ballast/open.hpp>

#include <filesystem>
#include <utility>

#include "checkpoint/cache.hpp"
#include "checkpoint/detect.hpp"
#include "checkpoint/folder.hpp"
#include "checkpoint/quantization.hpp"
#include "checkpoint/read_source.hpp"
#include "checkpoint/roots.hpp"
#include "checkpoint/scan_file.hpp"
#include "checkpoint/shards.hpp"
#include "formats/gguf/split.hpp"
#include "io/patch_file.hpp"

namespace ballast {
namespace {

namespace fs = std::filesystem;

Checkpoint open_file(const std::string& path, const OpenOptions& options) {
  const auto source = io::open_file(path);
  switch (detect(*source)) {
    case Content::json: return open_index(path, options);
    // Any part opens the set, as llama.cpp does it.
    case Content::gguf:
      return options.single ? read_source(source, options) : from_gguf(gguf::open_set(path, gguf_options(options)));
    default: return read_source(source, options);
  }
}

// Whose metadata somebody may have begun to edit.
Checkpoint open_edited_file(const std::string& path, const OpenOptions& options) {
  try {
    return open_file(path, options);
  } catch (Error& error) {
    if (!io::has_cut_off_patch(path)) throw;
    throw error.hint(
        "an edit of its metadata was cut off; `ballast meta set FILE KEY=VALUE` puts the old ones back first");
  }
}

Checkpoint open_folder(const std::string& path, const OpenOptions& options) {
  const FolderContents contents = look_into(path);
  // The parts of a set find each other.
  if (contents.index.empty() && contents.files.front().ends_with(".gguf"))
    return open_file(contents.files.front(), options);
  Checkpoint checkpoint =
      contents.index.empty() ? open_shards(contents.files, options) : open_index(contents.index, options);
  checkpoint.notes.insert(checkpoint.notes.begin(), contents.notes.begin(), contents.notes.end());
  return checkpoint;
}

// What every checkpoint goes through, wherever it comes from.
Checkpoint finish(Checkpoint checkpoint, const std::string& target, const Limits& limits) {
  checkpoint.target = target;
  sort_roots(checkpoint);
  return unfold_agreements(std::move(checkpoint), limits);
}

// What the user gets: the subtree that was asked for, and whether its weights are what they seem. `beside` is where
// configurations may lie.
Checkpoint rooted(Checkpoint checkpoint, const OpenOptions& options, const std::string& beside) {
  if (!options.root.empty()) checkpoint = take_root(std::move(checkpoint), options.root);
  return recognize_quantization(std::move(checkpoint), beside, options.limits);
}

}  // namespace

Checkpoint open(const std::string& target, const OpenOptions& options) {
  if (options.cache != Cache::ignore) {
    if (auto cached = open_cached(target, options)) return rooted(std::move(*cached), options, target);
  }
  std::error_code ignored;
  const bool is_folder = fs::is_directory(target, ignored);
  Checkpoint whole = is_folder ? open_folder(target, options) : open_edited_file(target, options);
  whole = finish(std::move(whole), target, options.limits);
  return rooted(make_cache(target, std::move(whole), options), options, target);
}

Checkpoint open_bytes(std::vector<std::byte> bytes, const std::string& name, const OpenOptions& options) {
  const auto source = io::from_memory(std::move(bytes), name);
  Checkpoint checkpoint = read_source(source, options);
  // Nobody can come back to the bytes, as refuse_dangerous() does to a file.
  if (checkpoint.dangerous.empty()) {
    for (Global& global : scan_file(source, ScanOptions{options, {}}, ScanFor::danger).globals) {
      if (global.verdict == Verdict::dangerous) checkpoint.dangerous.push_back(std::move(global));
    }
  }
  return rooted(finish(std::move(checkpoint), name, options.limits), options, {});
}

}  // namespace ballast
