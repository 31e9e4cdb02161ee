#include <ballast/error.hpp>
#include <ballast/open.hpp>

#include <utility>

#include "checkpoint/cache.hpp"
#include "checkpoint/folder.hpp"
#include "checkpoint/quantization.hpp"
#include "checkpoint/read_source.hpp"
#include "checkpoint/roots.hpp"
#include "checkpoint/shards.hpp"
#include "formats/all.hpp"
#include "io/patch_file.hpp"

namespace ballast {
namespace {

Checkpoint open_file(const std::string& path, const OpenOptions& options) {
  const Recognized recognized = recognize(options.files->open(path), options.limits);
  if (recognized.is_json()) return open_index(recognized.file.source, options);
  const bool is_set = recognized.format->read_set != nullptr && !options.single;
  return is_set ? read_set(recognized, options) : read_recognized(recognized, options);
}

bool is_local(const OpenOptions& options) { return options.files == local_files(); }

// Whose metadata somebody may have begun to edit.
Checkpoint open_edited_file(const std::string& path, const OpenOptions& options) {
  try {
    return open_file(path, options);
  } catch (Error& error) {
    if (!is_local(options) || !io::has_cut_off_patch(path)) throw;
    throw error.hint(
        "an edit of its metadata was cut off; `ballast meta set FILE KEY=VALUE` puts the old ones back first");
  }
}

Checkpoint open_folder(const std::string& path, std::vector<std::string> names, const OpenOptions& options) {
  const FolderContents contents = look_into(path, std::move(names), *options.files);
  const FileFormat* format = contents.index.empty() ? format_by_ending(contents.files.front()) : nullptr;
  const bool is_set = format != nullptr && format->read_set != nullptr;  // whose files find each other
  if (is_set) return open_file(contents.files.front(), options);
  Checkpoint checkpoint = contents.index.empty() ? open_shards(contents.files, options)
                                                 : open_index(options.files->open(contents.index), options);
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
  return recognize_quantization(std::move(checkpoint), beside, options);
}

}  // namespace

Checkpoint open(const std::string& target, const OpenOptions& options) {
  const bool is_cached = is_local(options) && options.cache != Cache::ignore;
  if (is_cached) {
    if (auto cached = open_cached(target, options)) return rooted(std::move(*cached), options, target);
  }
  auto names = options.files->list(target);
  Checkpoint whole = names ? open_folder(target, *std::move(names), options) : open_edited_file(target, options);
  whole = finish(std::move(whole), target, options.limits);
  if (is_cached) whole = make_cache(target, std::move(whole), options);
  return rooted(std::move(whole), options, target);
}

Checkpoint open(SourcePtr source, const OpenOptions& options) {
  Checkpoint checkpoint = read_source(source, options);
  return rooted(finish(std::move(checkpoint), source->name(), options.limits), options, {});
}

Checkpoint open_bytes(std::vector<std::byte> bytes, const std::string& name, const OpenOptions& options) {
  return open(memory_source(std::move(bytes), name), options);
}

}  // namespace ballast
