#include <ballast/error.hpp>
#include <ballast/manifest.hpp>
#include <ballast/remote.hpp>
#include <ballast/source.hpp>
#include <ballast/verify.hpp>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "checkpoint/pipeline.hpp"
#include "checkpoint/recognize/detect.hpp"
#include "checkpoint/recognize/folder.hpp"
#include "checkpoint/recognize/shard_index.hpp"
#include "core/deal.hpp"
#include "core/progress_meter.hpp"
#include "core/read_counter.hpp"
#include "core/text.hpp"
#include "core/thread_pool.hpp"
#include "inspect/chunks.hpp"
#include "io/section.hpp"
#include "kernels/crc32.hpp"
#include "tensor/packed_storage.hpp"
#include "tensor/read_ahead.hpp"
#include "tensor/repeated_bytes.hpp"
#include "tensor/same_sources.hpp"

namespace ballast {
namespace {

std::string describe(const Error& error) {
  std::string text = error.message();
  if (error.offset()) text += " (byte " + std::to_string(*error.offset()) + ")";
  return text;
}

// In a torch file each storage has its own bytes; a storage that several tensors share is counted once.
std::uint64_t bytes_of_storages(const Checkpoint& checkpoint) {
  std::set<const Storage*> storages;
  std::uint64_t total = 0;
  for (const auto& [name, tensor] : checkpoint) {
    if (tensor.storage() && storages.insert(tensor.storage().get()).second) total += tensor.storage()->size_bytes();
  }
  return total;
}

class Verifier {
 public:
  Verifier(const std::string& target, const VerifyOptions& options)
      : target_(target),
        options_(options),
        team_(team_of(options.team)),
        progress_(progress_of(team_, options.progress)) {}

  VerifyReport run() {
    // A manifest that cannot be read is an error, not a finding: then nothing is known about the target.
    std::optional<Manifest> manifest;
    if (!options_.manifest.empty()) manifest = load_manifest(options_.manifest, options_.open.limits);
    check_parts();
    const FolderContents contents = look_at_target();
    is_one_file_ = contents.index.empty() && contents.files.size() == 1;
    if (contents.index.empty()) {
      for (const std::string& file : contents.files) open_shard(file);
    } else {
      check_index(contents.index);
    }
    look_into(manifest);
    return std::move(report_);
  }

 private:
  void look_into(const std::optional<Manifest>& manifest) {
    Checkpoint checkpoint;
    if (!attempt([&] { checkpoint = open(target_, options_.open); })) return;
    check_same_sources(team_, checkpoint);
    report_.tensors = checkpoint.size();
    attempt([&] {
      if (options_.read_data) {
        read_everything(checkpoint);
        check_sums(checkpoint);
      }
      if (manifest) check_manifest(checkpoint, *manifest);
    });
  }

  // Whether the work succeeded. What one member of a team cannot read is a finding of all.
  bool attempt(const std::function<void()>& work) try {
    if (const auto failure = attempt_together(team_, work)) std::rethrow_exception(failure);
    return true;
  } catch (const Error& error) {
    if (error.code() == Errc::cancelled || says_it_is_no_checkpoint(error)) throw;
    const bool is_known = error.code() == Errc::not_found && lacks_shards_;  // each of them is a finding already
    if (!is_known) find(error.where(), describe(error));
    return false;
  }

  // A shard that Ballast cannot read is damage to the set; a file that is something else altogether is not damaged.
  bool says_it_is_no_checkpoint(const Error& error) const { return is_one_file_ && error.code() == Errc::unsupported; }

  // Reports each finding once: a fault of a file shows when the file is opened alone, and again with the others.
  void find(const std::string& where, const std::string& what) {
    if (known_.emplace(where, what).second) report_.findings.push_back({where, what});
  }

  // The parts of a pipeline are checkpoints of their own, with indexes of their own.
  void check_parts() {
    const auto pipeline = find_pipeline(target_, options_.open);
    if (!pipeline) return;
    for (const Note& note : pipeline->notes) find(note.where, note.text);
    VerifyOptions options = options_;
    options.read_data = false;
    options.manifest.clear();
    options.open.root.clear();
    for (const PipelinePart& part : pipeline->parts) {
      const VerifyReport report = Verifier(part.folder, options).run();
      for (const Finding& finding : report.findings) find(finding.where, finding.what);
    }
  }

  FolderContents look_at_target() const {
    const Files& files = *options_.open.files;
    if (auto names = files.list(target_)) {
      if (!has_checkpoint(*names) && find_pipeline(target_, options_.open)) return {};  // the parts are looked at alone
      return look_for_damage(target_, *std::move(names), files, options_.open.variant);
    }
    const auto source = files.open(target_);  // a target that is not there is an error, not a finding
    try {
      if (recognize(source, options_.open.limits).is_json()) return {target_, {}, {}, {}};
    } catch (const Error& error) {
      if (error.code() == Errc::unsupported) throw;
      // opening the file will say the same
    }
    return {{}, {target_}, {}, {}};
  }

  // Every tensor must be in the shard that the index says, and the index must list every tensor.
  void check_index(const std::string& path) try {
    const Files& files = *options_.open.files;
    const auto text = io::read_text(*files.open(path), options_.open.limits);
    const ShardIndex index = parse_shard_index(text, options_.open.limits);
    std::vector<std::optional<Checkpoint>> shards;
    std::uint64_t total = 0, stored = 0, listed = 0, held = 0;
    for (const std::string& file : index.files) {
      shards.push_back(open_shard(files.beside(path, file)));
      if (!shards.back()) continue;
      held += shards.back()->size() - shards.back()->aliases.size();
      for (const auto& [name, tensor] : *shards.back())
        total += shards.back()->aliases.contains(name) ? 0 : stored_bytes(tensor);
      stored += bytes_of_storages(*shards.back());
    }
    for (const ShardIndex::Place& place : index.weight_map) {
      const auto& shard = shards[place.file];
      if (!shard) continue;
      if (shard->contains(place.tensor)) {
        ++listed;
      } else {
        find(path, "tensor " + quote(place.tensor) + " is not in " + quote(index.files[place.file]));
      }
    }
    for (std::size_t i = 0; i < shards.size() && listed < held; ++i) find_unlisted(path, index, i, shards[i]);
    const bool complete =
        std::all_of(shards.begin(), shards.end(), [](const auto& shard) { return shard.has_value(); });
    if (complete && index.total_size && *index.total_size != total && *index.total_size != stored) {
      find(path, "total_size is " + std::to_string(*index.total_size) + ", but the shards have " +
                     std::to_string(total) + " bytes of tensors");
    }
  } catch (Error& error) {
    if (path == target_ && error.code() == Errc::unsupported) throw error.in(path);  // JSON, but not an index
    find(path, describe(error));
  }

  void find_unlisted(const std::string& path, const ShardIndex& index, std::size_t number,
                     const std::optional<Checkpoint>& shard) {
    if (!shard) return;
    if (listed_.empty()) {
      for (const ShardIndex::Place& place : index.weight_map) listed_.emplace(place.tensor, place.file);
    }
    for (const auto& [name, tensor] : *shard) {
      const auto place = listed_.find(name);
      const bool is_listed = place != listed_.end() && place->second == number;
      if (!is_listed && !shard->aliases.contains(name)) {
        find(path, "does not list tensor " + quote(name) + " of " + quote(index.files[number]));
      }
    }
  }

  std::optional<Checkpoint> open_shard(const std::string& path) {
    try {
      Checkpoint shard = open(path, options_.open);
      for (const Note& note : shard.notes) {
        if (note.kind == Note::Kind::oddity) find(note.where, note.text);
      }
      return shard;
    } catch (const Error& error) {
      if (says_it_is_no_checkpoint(error)) throw;
      lacks_shards_ = lacks_shards_ || error.code() == Errc::not_found;
      find(error.where().empty() ? path : error.where(), describe(error));
      return std::nullopt;
    }
  }

  void read_everything(const Checkpoint& checkpoint) {
    std::vector<const Tensor*> tensors;
    RepeatedBytes repeated(options_.open.limits);
    std::uint64_t total = 0;
    for (const auto& [name, tensor] : checkpoint) {
      if (checkpoint.aliases.contains(name) || !tensor.has_data()) continue;
      repeated.add(name, tensor);
      tensors.push_back(&tensor);
      total += tensor.nbytes();
    }
    ProgressMeter meter(progress_, "reading", total);
    const auto parts = split_tensors(tensors);
    std::vector<std::uint64_t> sizes;
    for (const TensorPart& part : parts) sizes.push_back(part.size);
    const Deal deal(team_, sizes);
    const auto mine = deal.mine();
    ReadAhead ahead(mine.size(), [&](std::size_t i, Announcement& reads) {
      const TensorPart& part = parts[mine[i]];
      reads.add(*tensors[part.number], {part.first, part.size});
    });
    const ReadsOfMember reads(team_);
    ThreadPool(options_.open.threads).run(mine.size(), [&](std::size_t i, unsigned) {
      ahead.begin(i);
      const TensorPart& part = parts[mine[i]];
      const auto touch = [](std::span<const std::byte> bytes) {
        for (std::size_t at = 0; at < bytes.size(); at += 4096)
          static_cast<void>(*static_cast<const volatile std::byte*>(&bytes[at]));
      };
      for_each_chunk(*tensors[part.number], part.first, part.size, touch, &meter);
    });
    report_.bytes_read = total;
  }

  // The checksums that a file declares for its storages, which are zip members.
  void check_sums(const Checkpoint& checkpoint) {
    struct Source {
      std::string_view tensor;  // the first tensor in it
      StoragePtr storage;
    };
    std::vector<Source> sources;
    std::set<const Storage*> seen;
    for (const auto& [name, tensor] : checkpoint) {
      const StoragePtr& storage = tensor.storage();
      if (storage && storage->declared_crc32() && seen.insert(storage.get()).second) sources.push_back({name, storage});
    }
    std::vector<std::uint64_t> sizes;
    for (const Source& source : sources) sizes.push_back(source.storage->size_bytes());
    const Deal deal(team_, sizes);
    ProgressMeter meter(progress_, "checking sums", std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0}));
    std::vector<std::uint32_t> sums(sources.size());
    const ReadsOfMember reads(team_);
    ThreadPool(options_.open.threads).run(deal.mine().size(), [&](std::size_t i, unsigned) {
      const std::size_t number = deal.mine()[i];
      const Tensor bytes(DType::u8, {sizes[number]}, sources[number].storage);
      const auto add = [&](std::span<const std::byte> chunk) { sums[number] = kernels::crc32(sums[number], chunk); };
      for_each_chunk(bytes, 0, bytes.nbytes(), add, &meter);
    });
    deal.share(std::span(sums));
    for (std::size_t i = 0; i < sources.size(); ++i) {
      if (sums[i] == *sources[i].storage->declared_crc32()) continue;
      find(target_, "the checksum of the bytes of tensor " + quote(sources[i].tensor) + " is wrong");
    }
  }

  void check_manifest(const Checkpoint& checkpoint, const Manifest& wanted) {
    const Manifest found =
        make_manifest(checkpoint, {}, {options_.open.threads, options_.progress, options_.open.limits, options_.team});
    std::map<std::string_view, const Manifest::Entry*> there;
    for (const Manifest::Entry& entry : found.tensors) there.emplace(entry.name, &entry);
    for (const Manifest::Entry& entry : wanted.tensors) {
      const auto match = there.find(entry.name);
      if (match == there.end()) {
        find(target_, "tensor " + quote(entry.name) + " of the manifest is not there");
        continue;
      }
      compare(entry, *match->second);
      there.erase(match);
    }
    for (const auto& [name, entry] : there) find(target_, "tensor " + quote(name) + " is not in the manifest");
  }

  void compare(const Manifest::Entry& wanted, const Manifest::Entry& found) {
    const auto describe_type = [](const Manifest::Entry& entry) {
      return std::string(name(entry.dtype)) + " " + to_string(entry.shape);
    };
    if (wanted.dtype != found.dtype || wanted.shape != found.shape) {
      find(target_, "tensor " + quote(wanted.name) + " is " + describe_type(found) + ", in the manifest " +
                        describe_type(wanted));
    } else if (wanted.digest != found.digest) {
      find(target_, "the values of tensor " + quote(wanted.name) + " are not those of the manifest");
    }
  }

  const std::string& target_;
  const VerifyOptions& options_;
  Team& team_;
  Progress progress_;
  VerifyReport report_;
  bool is_one_file_ = false;
  bool lacks_shards_ = false;
  std::set<std::pair<std::string, std::string>> known_;  // where, what
  std::map<std::string_view, std::uint32_t> listed_;     // made when first needed
};

}  // namespace

VerifyReport verify(const std::string& target, const VerifyOptions& options) {
  VerifyOptions of_the_file_itself = options;
  of_the_file_itself.open = options_for(target, options.open);
  of_the_file_itself.open.cache = Cache::ignore;
  VerifyReport report;
  together(team_of(options.team), [&] {
    const auto snapshot = find_snapshot(target, *of_the_file_itself.open.files);
    report = Verifier(snapshot.value_or(target), of_the_file_itself).run();
  });
  return report;
}

}  // namespace ballast
