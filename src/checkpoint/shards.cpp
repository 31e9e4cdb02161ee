#include "checkpoint/shards.hpp"

#include <ballast/error.hpp>

#include <filesystem>
#include <unordered_map>
#include <utility>

#include "core/text.hpp"
#include "core/thread_pool.hpp"
#include "formats/safetensors/reader.hpp"

namespace ballast {
namespace {

std::string file_of(const Tensor& tensor) {
  const auto place = tensor.storage() ? tensor.storage()->location() : std::nullopt;
  return place ? std::filesystem::path(place->file).filename().string() : std::string();
}

bool leaves_its_folder(const std::string& path) {
  std::error_code error;
  const std::filesystem::path target = std::filesystem::read_symlink(path, error);
  return !error && target.has_parent_path();
}

class Merger {
 public:
  explicit Merger(const ShardIndex* index) : index_(index) {}

  void add(const std::string& path, Checkpoint shard) {
    const std::string file = std::filesystem::path(path).filename().string();
    all_.tensors.take_all(std::move(shard.tensors), [&](const StateDict::Entry& entry) { settle_duplicate(entry, file); });
    add_metadata(shard.metadata, file);
    all_.notes.insert(all_.notes.end(), shard.notes.begin(), shard.notes.end());
    all_.files.push_back(shard.files.front());
    if (leaves_its_folder(path) && links_++ == 0) first_link_ = path;
  }

  Checkpoint finish() {
    if (index_ != nullptr) {
      note_what_no_shard_has();
      add_metadata(index_->metadata, "the index");
    }
    if (links_ != 0) all_.notes.push_back({first_link_, std::to_string(links_) + " files are links that leave their folder"});
    all_.shards = all_.files.size();
    return std::move(all_);
  }

  void reserve(std::size_t count) { all_.tensors.reserve(count); }

 private:
  // A name that two shards have: the index decides, and only the index.
  void settle_duplicate(const StateDict::Entry& entry, const std::string& file) {
    const std::string other = file_of(all_.tensors.at(entry.name));
    const std::string* chosen = index_ == nullptr ? nullptr : file_by_index(entry.name);
    const std::string where = "tensor " + quote(entry.name) + " is in " + quote(other) + " and in " + quote(file);
    if (chosen == nullptr) {
      throw Error(Errc::mismatch, where + (index_ ? ", and the index does not say which one counts" : ""))
          .hint("open one of the files by its name");
    }
    if (*chosen == file) all_.tensors.replace(entry.name, entry.tensor);
    all_.notes.push_back({file, where + "; taken from " + quote(*chosen) + ", as the index says"});
  }

  const std::string* file_by_index(std::string_view tensor) {
    if (places_.empty()) {
      for (const ShardIndex::Place& place : index_->weight_map) places_.emplace(place.tensor, place.file);
    }
    const auto place = places_.find(tensor);
    return place == places_.end() ? nullptr : &index_->files[place->second];
  }

  void add_metadata(const Metadata& metadata, const std::string& file) {
    for (const auto& [key, value] : metadata) {
      const auto [place, is_new] = all_.metadata.try_emplace(key, value);
      if (!is_new && place->second != value) {
        all_.notes.push_back({file, "metadata " + quote(key) + " is not what another file says; kept the first"});
      }
    }
  }

  void note_what_no_shard_has() {
    std::uint64_t missing = 0;
    std::string_view example;
    for (const ShardIndex::Place& place : index_->weight_map) {
      if (all_.tensors.contains(place.tensor)) continue;
      if (missing++ == 0) example = place.tensor;
    }
    if (missing == 0) return;
    all_.notes.push_back({"the index", "names " + std::to_string(missing) + " tensors that no shard has, such as " + quote(example)});
  }

  const ShardIndex* index_;
  std::unordered_map<std::string_view, std::uint32_t> places_;  // made when first needed
  Checkpoint all_;
  std::size_t links_ = 0;
  std::string first_link_;
};

}  // namespace

Checkpoint open_shards(const std::vector<std::string>& paths, const ShardIndex* index, const OpenOptions& options) {
  std::vector<Checkpoint> shards(paths.size());
  ThreadPool(paths.size() == 1 ? 1 : options.threads).run(paths.size(), [&](std::size_t i, unsigned) {
    shards[i] = safetensors::read(io::open_file(paths[i]), {options.limits, options.lenient});
  });

  std::size_t count = 0;
  for (const Checkpoint& shard : shards) count += shard.size();
  if (count > options.limits.max_tensors) {
    throw Error(Errc::limit, "the shards have more than " + std::to_string(options.limits.max_tensors) + " tensors");
  }
  Merger merger(index);
  merger.reserve(count);
  for (std::size_t i = 0; i < shards.size(); ++i) merger.add(paths[i], std::move(shards[i]));
  return merger.finish();
}

}  // namespace ballast
