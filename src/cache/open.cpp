#include <ballast/error.hpp>
#include <ballast/open.hpp>
#include <ballast/remote.hpp>

#include <optional>
#include <utility>

#include "cache/cache.hpp"
#include "checkpoint/open_whole.hpp"
#include "checkpoint/pipeline.hpp"
#include "checkpoint/recognize/folder.hpp"

namespace ballast {

namespace {

Checkpoint open_itself(const std::string& target, const OpenOptions& options) {
  const bool is_cached = options.cache != Cache::ignore && options.files == local_files();
  if (!is_cached) return take_asked_for(open_whole(target, options), options, target);
  auto cached = open_cached(target, options);
  Checkpoint whole = cached ? *std::move(cached) : make_cache(target, open_whole(target, options), options);
  return take_asked_for(std::move(whole), options, target);
}

// A folder without a checkpoint may have folders with some.
std::optional<Checkpoint> open_inner_folders(const std::string& target, const OpenOptions& options) {
  const OpenPart open_part = [](const std::string& part, const OpenOptions& given) { return open(part, given); };
  if (const auto snapshot = find_snapshot(target, *options.files)) return open(*snapshot, options);
  if (const auto pipeline = find_pipeline(target, options)) return open_pipeline(target, *pipeline, options, open_part);
  return std::nullopt;
}

}  // namespace

Checkpoint open(const std::string& target, const OpenOptions& options) {
  if (const OpenOptions found = options_for(target, options); found.files != options.files) return open(target, found);
  try {
    return open_itself(target, options);
  } catch (const Error& error) {
    if (error.code() != Errc::not_found) throw;
    if (auto inner = open_inner_folders(target, options)) return *std::move(inner);
    throw;
  }
}

std::vector<std::string> choices_in(const std::string& folder, const OpenOptions& given) {
  const OpenOptions options = options_for(folder, given);
  auto names = options.files->list(folder);
  if (!names) return {};
  std::vector<std::string> choices = choices_among(*std::move(names));
  for (std::string& choice : choices) choice = options.files->inside(folder, choice);
  return choices.empty() ? possible_snapshots(folder, *options.files) : choices;
}

Checkpoint open(SourcePtr source, const OpenOptions& options) {
  return take_asked_for(open_whole(source, options), options, {});
}

Checkpoint open_bytes(std::vector<std::byte> bytes, const std::string& name, const OpenOptions& options) {
  return open(memory_source(std::move(bytes), name), options);
}

}  // namespace ballast
