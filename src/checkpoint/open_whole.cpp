#include "checkpoint/open_whole.hpp"

#include <utility>

#include <ballast/dequantize.hpp>
#include <ballast/error.hpp>

#include "checkpoint/quantization/schemes.hpp"
#include "checkpoint/read_source.hpp"
#include "checkpoint/recognize/folder.hpp"
#include "checkpoint/roots.hpp"
#include "checkpoint/shards.hpp"
#include "core/text.hpp"
#include "formats/all.hpp"
#include "io/patch_file.hpp"

namespace ballast {
namespace {

Checkpoint open_file(const std::string& path, const OpenOptions& options) {
  const Recognized recognized = recognize(options.files->open(path), options.limits, options.checks_end);
  if (recognized.is_json()) return open_index(recognized.file.source, options);
  const bool is_set = recognized.format->read_set != nullptr && !options.single;
  return is_set ? read_set(recognized, options) : read_recognized(recognized, options);
}

// Opens a file whose metadata somebody may have begun to edit.
Checkpoint open_edited_file(const std::string& path, const OpenOptions& options) {
  try {
    return open_file(path, options);
  } catch (Error& error) {
    if (options.files != local_files() || !io::has_cut_off_patch(path)) throw;
    throw error.hint("an edit of its metadata was cut off; the next edit of the metadata puts the old ones back first");
  }
}

Checkpoint open_folder(const std::string& path, std::vector<std::string> names, const OpenOptions& options) {
  const FolderContents contents = look_into(path, std::move(names), *options.files, options.variant);
  const FileFormat* format = contents.index.empty() ? format_by_ending(contents.files.front()) : nullptr;
  const bool is_set = format != nullptr && format->read_set != nullptr;  // a set whose files find each other
  if (is_set) return open_file(contents.files.front(), options);
  Checkpoint checkpoint = contents.index.empty() ? open_shards(contents.files, options)
                                                 : open_index(options.files->open(contents.index), options);
  checkpoint.notes.insert(checkpoint.notes.begin(), contents.notes.begin(), contents.notes.end());
  return checkpoint;
}

// Every checkpoint goes through this, wherever it comes from.
Checkpoint finish(Checkpoint checkpoint, const std::string& target, const Limits& limits) {
  checkpoint.target = target;
  sort_roots(checkpoint);
  return unfold_agreements(std::move(checkpoint), limits);
}

}  // namespace

Checkpoint open_whole(const std::string& target, const OpenOptions& options) {
  const auto names = options.files->list(target);
  Checkpoint whole = names ? open_folder(target, *names, options) : open_edited_file(target, options);
  if (!names && !options.variant.empty()) {
    whole.notes.push_back(
        {target, "a file is opened as it is: only a folder is looked through for the variant " + quote(options.variant),
         Note::Kind::remark});
  }
  for (std::string& note : options.files->notes(target))
    whole.notes.push_back({target, std::move(note), Note::Kind::remark});
  return finish(std::move(whole), target, options.limits);
}

Checkpoint open_whole(const SourcePtr& source, const OpenOptions& options) {
  return finish(read_source(source, options), source->name(), options.limits);
}

Checkpoint take_asked_for(Checkpoint whole, const OpenOptions& options, const std::string& beside) {
  if (!options.root.empty()) whole = take_root(std::move(whole), options.root);
  whole = recognize_quantization(std::move(whole), beside, options);
  if (!options.dequantize) return whole;
  return dequantize(std::move(whole), {.limits = options.limits, .lenient = options.lenient});
}

}  // namespace ballast
