#include "checkpoint/shards.hpp"

#include <ballast/error.hpp>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <utility>

#include "checkpoint/links.hpp"
#include "checkpoint/read_source.hpp"
#include "checkpoint/recognize/shard_index.hpp"
#include "core/name_hash.hpp"
#include "core/remedy.hpp"
#include "core/text.hpp"
#include "core/thread_pool.hpp"
#include "io/section.hpp"
#include "tensor/checkpoint_parts.hpp"
#include "tensor/doors.hpp"

namespace ballast {
namespace {

std::string last_component(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

class Merger {
 public:
  Merger(const ShardIndex* index, const Files& files) : index_(index), files_(files) {}

  void merge(const std::vector<std::string>& paths, std::vector<Checkpoint> shards) {
    std::vector<StateDict> parts;
    std::vector<std::size_t> sizes;
    for (std::size_t i = 0; i < paths.size(); ++i) {
      Checkpoint& shard = shards[i];
      add_metadata(shard.metadata, last_component(paths[i]));
      all_.files.push_back(shard.files.front());
      if (i == 0) all_.format = shard.format;
      take_over(all_, shard);
      for (const MetadataEntry& field : shard.typed_metadata) {
        if (!all_.typed_metadata.contains(field.key)) all_.typed_metadata.set(field);
      }
      for (const Root& root : shard.roots) add_root(root);
      if (leads_out(files_, paths[i]) && links_++ == 0) first_link_ = paths[i];
      sizes.push_back(shard.size());
      parts.push_back(std::move(shard.tensors));
    }
    StateDict merged;
    has_duplicates_ = Doors::adopt_all(merged, std::move(parts), &names_sum_).has_value();
    if (has_duplicates_) {
      merge_one_by_one(merged, paths, sizes);
    } else {
      all_.tensors = std::move(merged);
    }
  }

  Checkpoint finish() {
    if (index_ != nullptr) {
      check_settled();
      note_what_is_stale();
      add_metadata(index_->metadata, "the index");
    }
    if (links_ != 0)
      all_.notes.push_back({first_link_, (links_ == 1 ? "a link leads" : std::to_string(links_) + " links lead") +
                                             std::string(" out of the folder")});
    all_.shards = all_.files.size();
    return std::move(all_);
  }

 private:
  // `sizes` says how many entries come from each of the files.
  void merge_one_by_one(const StateDict& merged, const std::vector<std::string>& paths,
                        const std::vector<std::size_t>& sizes) {
    all_.tensors.reserve(merged.size());
    std::size_t next = 0;
    for (std::size_t i = 0; i < paths.size(); ++i) {
      const std::string file = last_component(paths[i]);
      for (const std::size_t end = next + sizes[i]; next < end; ++next) {
        const StateDict::Entry& entry = merged[next];
        if (all_.tensors.insert(entry.name, entry.tensor))
          origins_.emplace(entry.name, file);
        else
          settle_duplicate(entry, file);
      }
    }
  }

  // If two shards have the same name, only the index decides.
  void settle_duplicate(const StateDict::Entry& entry, const std::string& file) {
    std::string& origin = origins_.at(std::string(entry.name));
    const std::string other = origin;
    const std::string* chosen = index_ == nullptr ? nullptr : file_by_index(entry.name);
    const std::string where = "tensor " + quote(entry.name) + " is in " + quote(other) + " and in " + quote(file);
    if (chosen == nullptr) {
      throw Error(Errc::malformed, where + (index_ ? ", and the index does not say which one counts" : ""))
          .hint("open one of the files by its name");
    }
    if (*chosen == file) {
      all_.tensors.replace(entry.name, entry.tensor);
      origin = file;
    }
    settled_.emplace(entry.name, chosen);
    all_.notes.push_back({file, where + "; taken from " + quote(*chosen) + ", as the index says"});
  }

  const std::string* file_by_index(std::string_view tensor) {
    if (places_.empty()) {
      for (const ShardIndex::Place& place : index_->weight_map) places_.emplace(place.tensor, place.file);
    }
    const auto place = places_.find(tensor);
    return place == places_.end() ? nullptr : &index_->files[place->second];
  }

  // Most shards have the same roots.
  void add_root(const Root& root) {
    const auto same = std::ranges::find(all_.roots, root.path, &Root::path);
    if (same == all_.roots.end()) return all_.roots.push_back(root);
    same->tensors += root.tensors;
  }

  void add_metadata(const Metadata& metadata, const std::string& file) {
    for (const auto& [key, value] : metadata) {
      const auto [place, is_new] = all_.metadata.try_emplace(key, value);
      if (!is_new && place->second != value) {
        all_.notes.push_back({file, "metadata " + quote(key) + " is not what another file says; kept the first"});
      }
    }
  }

  // The index may have chosen a third file, which does not have the tensor.
  void check_settled() const {
    for (const auto& [name, chosen] : settled_) {
      if (origins_.at(name) == *chosen) continue;
      throw Error(Errc::malformed, "tensor " + quote(name) + " is in several files, but not in " + quote(*chosen) +
                                       ", where the index says it is")
          .hint("open one of the files by its name");
    }
  }

  bool lists_what_is_there() {
    if (all_.tensors.size() != index_->weight_map.size()) return false;
    if (has_duplicates_) {
      for (const auto& [name, tensor] : all_.tensors) names_sum_ += hash_name(name);
    }
    return names_sum_ == index_->names_sum;
  }

  void note_what_is_stale() {
    if (lists_what_is_there()) return;
    refuse_repeated_tensors(*index_);
    std::uint64_t missing = 0;
    std::string_view example;
    for (const ShardIndex::Place& place : index_->weight_map) {
      if (all_.tensors.contains(place.tensor)) continue;
      if (missing++ == 0) example = place.tensor;
    }
    if (missing != 0) {
      all_.notes.push_back(
          {"the index", "names " + std::to_string(missing) + " tensors that no shard has, such as " + quote(example)});
    }
    const std::uint64_t unlisted = all_.tensors.size() + missing - index_->weight_map.size();
    if (unlisted == 0) return;
    const auto is_unlisted = [&](const StateDict::Entry& entry) { return file_by_index(entry.name) == nullptr; };
    const auto first = std::find_if(all_.tensors.begin(), all_.tensors.end(), is_unlisted);
    all_.notes.push_back({"the index", "does not list " + std::to_string(unlisted) +
                                           " tensors of its shards, such as " + quote(first->name)});
  }

  const ShardIndex* index_;
  const Files& files_;
  NameViewMap<std::uint32_t> places_;  // made when first needed
  NameMap<std::string> origins_;       // the file of each tensor, if some names occur twice
  std::map<std::string, const std::string*, std::less<>>
      settled_;  // names that several shards have -> the file that the index chose
  Checkpoint all_;
  bool has_duplicates_ = false;  // names that several shards have
  std::uint64_t names_sum_ = 0;  // as in ShardIndex
  std::size_t links_ = 0;
  std::string first_link_;
};

Checkpoint merged(const std::vector<std::string>& paths, std::vector<Checkpoint> shards, const ShardIndex* index,
                  const OpenOptions& options) {
  std::size_t count = 0;
  for (const Checkpoint& shard : shards) count += shard.size();
  if (count > options.limits.max_tensors)
    throw Error(Errc::limit, "the shards have more than " + std::to_string(options.limits.max_tensors) + " tensors")
        .hint(raise_limit("max_tensors"));
  Merger merger(index, *options.files);
  merger.merge(paths, std::move(shards));
  return merger.finish();
}

// Opens shards as soon as the index names them, while the rest of the index is still being read.
class EarlyShards {
 public:
  EarlyShards(const std::string& index, const OpenOptions& options) : index_(index), options_(options) {}

  std::string path_of(const std::string& file) const { return options_.files->beside(index_, file); }

  void add(const std::string& file) {
    const std::lock_guard lock(mutex_);
    shards_.try_emplace(file);
    waiting_.push_back(file);
    changed_.notify_one();
  }

  // Says at its end that no more shards will come, whether the index was read to its end or not.
  struct Closer {
    EarlyShards& shards;
    ~Closer() { shards.close(); }
  };
  void close() {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
    changed_.notify_all();
  }

  // Returns when all shards are opened or have failed. Several threads may call it at once.
  void open_all() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return is_closed_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      const std::string file = std::move(waiting_.front());
      waiting_.pop_front();
      Shard& shard = shards_.at(file);  // the reference stays valid when others are added
      lock.unlock();
      try {
        shard.checkpoint = read_source(options_.files->open(path_of(file)), options_);
      } catch (...) {
        shard.error = std::current_exception();
      }
      lock.lock();
    }
  }

  // Whether the shard is not there at all.
  bool is_absent(const std::string& file) const {
    const std::exception_ptr& failure = shards_.at(file).error;
    if (!failure) return false;
    try {
      std::rethrow_exception(failure);
    } catch (const Error& error) {
      return error.code() == Errc::not_found;
    } catch (...) {
      return false;
    }
  }

  Checkpoint take(const std::string& file) {
    Shard& shard = shards_.at(file);
    if (shard.error) std::rethrow_exception(shard.error);
    return std::move(shard.checkpoint);
  }

 private:
  struct Shard {
    Checkpoint checkpoint;
    std::exception_ptr error;
  };

  const std::string& index_;
  const OpenOptions& options_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  NameMap<Shard> shards_;
  std::deque<std::string> waiting_;
  bool is_closed_ = false;
};

// An interrupted download leaves an index without some of its shards: which, and how much is in them.
void require_shards(const ShardIndex& index, const EarlyShards& shards) {
  std::vector<bool> is_absent;
  std::size_t absent = 0, tensors = 0;
  const std::string* first = nullptr;
  for (const std::string& file : index.files) {
    is_absent.push_back(shards.is_absent(file));
    if (is_absent.back() && absent++ == 0) first = &file;
  }
  if (absent == 0) return;
  for (const ShardIndex::Place& place : index.weight_map) tensors += is_absent[place.file] ? 1U : 0U;
  throw Error(Errc::not_found, std::to_string(absent) + " of " + std::to_string(index.files.size()) + " shards" +
                                   (absent == 1 ? " is not there, " : " are not there, such as ") + quote(*first) +
                                   ", with " + std::to_string(tensors) + " of " +
                                   std::to_string(index.weight_map.size()) + " tensors")
      .hint("was a download interrupted? It has to be finished");
}

unsigned threads_of(const OpenOptions& options) {
  return options.threads != 0 ? options.threads : options.files->opens_at_once();
}

}  // namespace

Checkpoint open_shards(const std::vector<std::string>& paths, const OpenOptions& options) {
  std::vector<Checkpoint> shards(paths.size());
  ThreadPool(paths.size() == 1 ? 1 : threads_of(options)).run(paths.size(), [&](std::size_t i, unsigned) {
    shards[i] = read_source(options.files->open(paths[i]), options);
  });
  return merged(paths, std::move(shards), nullptr, options);
}

Checkpoint open_index(const SourcePtr& source, const OpenOptions& options) try {
  const auto text = io::read_text(*source, options.limits);
  ShardIndex index;
  EarlyShards early(source->name(), options);
  ThreadPool pool(threads_of(options));
  pool.run(pool.size() + 1, [&](std::size_t item, unsigned) {
    if (item != 0) return early.open_all();
    const EarlyShards::Closer closer{early};
    index = parse_shard_index_early(text, options.limits, [&](const std::string& file) { early.add(file); });
  });

  require_shards(index, early);
  std::vector<std::string> paths;
  std::vector<Checkpoint> shards;
  for (const std::string& file : index.files) {
    paths.push_back(early.path_of(file));
    shards.push_back(early.take(file));
  }
  Checkpoint checkpoint = merged(paths, std::move(shards), &index, options);
  checkpoint.files.push_back({source->name(), source->size_bytes(), source});
  return checkpoint;
} catch (Error& error) {
  throw error.in(source->name());
}

}  // namespace ballast
