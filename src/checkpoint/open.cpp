#include <ballast/error.hpp>
#include <ballast/open.hpp>

#include <filesystem>
#include <utility>

#include "checkpoint/aliases.hpp"
#include "checkpoint/detect.hpp"
#include "checkpoint/folder.hpp"
#include "checkpoint/shard_index.hpp"
#include "checkpoint/shards.hpp"
#include "formats/safetensors/reader.hpp"

namespace ballast {
namespace {

namespace fs = std::filesystem;

Checkpoint open_index(const std::string& path, const OpenOptions& options) try {
  const auto text = io::read_text_file(path, options.limits.max_index_bytes);
  const ShardIndex index = parse_shard_index(text, options.limits);
  std::vector<std::string> paths;
  for (const std::string& file : index.files) paths.push_back((fs::path(path).parent_path() / file).string());
  Checkpoint checkpoint = open_shards(paths, &index, options);
  checkpoint.files.push_back({path, text->view().size()});
  return checkpoint;
} catch (Error& error) {
  throw error.in(path);
}

Checkpoint open_folder(const std::string& path, const OpenOptions& options) {
  const FolderContents contents = look_into(path);
  Checkpoint checkpoint =
      contents.index.empty() ? open_shards(contents.files, nullptr, options) : open_index(contents.index, options);
  checkpoint.notes.insert(checkpoint.notes.begin(), contents.notes.begin(), contents.notes.end());
  return checkpoint;
}

Checkpoint open_source(const io::ByteSourcePtr& source, const OpenOptions& options) {
  switch (detect(*source)) {
    case Content::safetensors: return safetensors::read(source, {options.limits, options.lenient});
    case Content::json: return open_index(source->name(), options);
  }
  return {};
}

}  // namespace

Checkpoint open(const std::string& target, const OpenOptions& options) {
  std::error_code ignored;
  Checkpoint checkpoint =
      fs::is_directory(target, ignored) ? open_folder(target, options) : open_source(io::open_file(target), options);
  checkpoint.target = target;
  return unfold_aliases(std::move(checkpoint));
}

Checkpoint open_bytes(std::vector<std::byte> bytes, const std::string& name, const OpenOptions& options) {
  const auto source = io::from_memory(std::move(bytes), name);
  if (detect(*source) == Content::json) {
    throw Error(Errc::unsupported, "an index of shards names files, and there are none in memory").in(name);
  }
  return unfold_aliases(safetensors::read(source, {options.limits, options.lenient}));
}

}  // namespace ballast
