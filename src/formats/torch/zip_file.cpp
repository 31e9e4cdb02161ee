// A torch zip:
//   NAME/data.pkl                 the object
//   NAME/data/KEY                 one storage each, stored
//   NAME/byteorder                "little" or "big"; absent before 2.1
//   NAME/version, NAME/.data/…    of no interest here
//   NAME/constants.pkl            TorchScript only, with its storages under NAME/constants/KEY, and code beside it
#include <fmt/format.h>
#include <ballast/error.hpp>

#include <algorithm>
#include <array>
#include <unordered_map>

#include "core/name_hash.hpp"
#include "core/remedy.hpp"
#include "core/text.hpp"
#include "formats/pickle/machine.hpp"
#include "formats/torch/globals_check.hpp"
#include "formats/torch/read.hpp"
#include "formats/torch/walk.hpp"
#include "tensor/transformed_storage.hpp"

namespace ballast::torch {
namespace {

using archive::Zip;
using namespace std::string_view_literals;
using archive::ZipMember;
using pickle::Graph;
using pickle::NodeId;

constexpr std::string_view kObject = "data.pkl";
constexpr std::string_view kConstants = "constants.pkl";

// "NAME/", or "" if the members lie at the top; nothing if there is no data.pkl.
std::optional<std::string_view> find_prefix(const Zip& zip) {
  std::optional<std::string_view> prefix;
  for (const ZipMember& member : zip.members) {
    const std::string_view name = member.name;
    if (!name.ends_with(kObject)) continue;
    const std::string_view before = name.substr(0, name.size() - kObject.size());
    const auto slash = before.find('/');
    if (!before.empty() && slash != before.size() - 1) continue;  // deeper, or another name with the same end
    if (prefix) return std::nullopt;                              // two checkpoints: an archive
    prefix = before;
  }
  return prefix;
}

class ZipStorages final : public StorageTable {
 public:
  // Keys are looked for under `folder`: "NAME/data/".
  ZipStorages(const Zip& zip, std::string folder, bool is_big_endian)
      : zip_(zip), folder_(std::move(folder)), is_big_endian_(is_big_endian) {
    for (const ZipMember& member : zip.members) {
      if (member.name.starts_with(folder_))
        members_.emplace(std::string_view(member.name).substr(folder_.size()), &member);
    }
  }

  std::optional<Stored> find(const Graph& graph, NodeId node) override {
    const auto id = parse_persistent_id(graph, node);
    if (!id) return std::nullopt;
    const std::uint64_t size = id->size_bytes();
    const auto found = members_.find(id->key);
    if (found == members_.end()) {
      if (size == 0) return Stored{nullptr, 0, 0, id->dtype};
      throw Error(Errc::malformed, fmt::format("storage {} has no member {}", quote(id->key), quote(folder_ + id->key)))
          .at_byte(graph[node].offset);
    }
    if (found->second->bytes != size) {
      throw Error(Errc::malformed, fmt::format("storage {} has {} bytes in the pickle, but its member has {}",
                                               quote(id->key), size, found->second->bytes))
          .at_byte(graph[node].offset);
    }
    return Stored{storage_for(*found->second, *id), 0, size, id->dtype};
  }

  Unused unused() const override {
    Unused unused;
    for (const ZipMember& member : zip_.members) {
      if (member.name.starts_with(folder_) && !plain_.contains(&member))
        unused.add(std::string_view(member.name).substr(folder_.size()), member.bytes);
    }
    return unused;
  }

 private:
  // One storage for each member and byte order, so that tensors that share a member share it here.
  StoragePtr storage_for(const ZipMember& member, const PersistentId& id) {
    StoragePtr& plain = plain_[&member];
    if (!plain) plain = archive::member_storage(zip_, member);
    // torch swaps elements only if it knows their type: an untyped storage stays as it is.
    const std::uint64_t width = !is_big_endian_ || !id.dtype ? 1 : swapped_bytes(*id.dtype);
    if (width == 1 || member.bytes == 0) return plain;
    StoragePtr& swapped = swapped_[{&member, width}];
    if (!swapped) {
      Tensor bytes(DType::u8, {member.bytes}, plain);
      swapped = swapped_elements(std::move(bytes), width);
    }
    return swapped;
  }

  const Zip& zip_;
  std::string folder_;
  bool is_big_endian_;
  NameViewMap<const ZipMember*> members_;
  std::unordered_map<const ZipMember*, StoragePtr> plain_;
  std::map<std::pair<const ZipMember*, std::uint64_t>, StoragePtr> swapped_;
};

bool read_is_big_endian(const Zip& zip, const std::string& prefix, const Limits& limits) {
  const ZipMember* member = zip.find(prefix + "byteorder");
  if (!member) return false;
  if (member->bytes <= 8) {
    const auto source = archive::member_source(zip, *member, limits);
    std::string order(static_cast<std::size_t>(member->bytes), '\0');
    source->read(0, std::as_writable_bytes(std::span(order)));
    if (order == "little") return false;
    if (order == "big") return true;
  }
  throw Error(Errc::malformed, "the member \"byteorder\" says neither \"little\" nor \"big\"")
      .at_byte(member->data_offset);
}

class ZipReader {
 public:
  ZipReader(const Zip& zip, std::string prefix, const ReadOptions& options, Checkpoint& checkpoint)
      : zip_(zip),
        prefix_(std::move(prefix)),
        options_(options),
        checkpoint_(checkpoint),
        is_big_endian_(read_is_big_endian(zip, prefix_, options.limits)) {}

  // Reads the pickle `name` with its storages under `folder`; its tensors are named under `path`.
  void read(std::string_view name, std::string_view folder, const std::string& path) const {
    const ZipMember* member = zip_.find(prefix_ + std::string(name));
    const auto source = archive::member_source(zip_, *member, options_.limits);
    try {
      Graph graph(source);
      const pickle::Pickle object = pickle::run(graph, 0, source->size_bytes(), options_.limits);
      check_globals(graph, options_.safety, member->name, checkpoint_);
      ZipStorages storages(zip_, prefix_ + std::string(folder), is_big_endian_);
      Rebuilder rebuilder(graph, storages, options_.limits, options_.nested);
      walk(graph, object.root, path, rebuilder, options_.limits, checkpoint_);
      note_unused(storages, checkpoint_);
      const bool is_whole = path.empty();  // the constants of TorchScript are not
      if (is_whole && options_.objects != nullptr) keep_objects(graph, object.root, rebuilder, *options_.objects);
    } catch (Error& error) {
      throw error.in(source->name());
    }
  }

 private:
  const Zip& zip_;
  std::string prefix_;
  const ReadOptions& options_;
  Checkpoint& checkpoint_;
  bool is_big_endian_;
};

// Only the name in a persistent id makes a member a storage, whatever else the pickle says about it.
void add_storages(const Zip& zip, const ZipMember& pickle, const std::string& folder, const Limits& limits,
                  std::unordered_set<const ZipMember*>& storages) try {
  NameViewMap<const ZipMember*> members;
  for (const ZipMember& member : zip.members) members.try_emplace(member.name, &member);
  const auto source = archive::member_source(zip, pickle, limits);
  Graph graph(source);
  std::vector<Error> complaints;
  pickle::run_leniently(graph, 0, source->size_bytes(), limits, complaints);
  for (NodeId node = 0; node < graph.size(); ++node) {
    if (graph.kind(node) != pickle::Kind::persistent) continue;
    const auto id = parse_persistent_id(graph, node);
    const auto found = id ? members.find(folder + id->key) : members.end();
    if (found != members.end() && found->second != &pickle) storages.insert(found->second);
  }
} catch (const Error&) {
  // The pickle is broken, and its scan says so. What comes behind the break names nothing.
}

// Fetches all that opening reads at once. A pickle with large arrays in it is read in pieces.
void prefetch_small_members(const Zip& zip, const std::string& prefix) {
  constexpr std::uint64_t kMostBytes = std::uint64_t{4} << 20;
  std::vector<const ZipMember*> members;
  for (const std::string_view name : {"byteorder"sv, kObject, kConstants}) {
    const ZipMember* member = zip.find(prefix + std::string(name));
    if (member != nullptr && member->packed_bytes <= kMostBytes) members.push_back(member);
  }
  archive::prefetch(zip, members);
}

bool is_part_of_a_checkpoint(std::string_view name) {
  constexpr std::array kFiles = {kObject,       kConstants,          "version"sv,
                                 "byteorder"sv, ".format_version"sv, ".storage_alignment"sv};
  constexpr std::array kFolders = {"data/"sv, "constants/"sv, "code/"sv, ".data/"sv};
  return std::ranges::find(kFiles, name) != kFiles.end() ||
         std::ranges::any_of(kFolders, [&](std::string_view folder) { return name.starts_with(folder); });
}

// Notes the members that somebody put beside the checkpoint. That TorchScript has code is known, and is said when the
// code is lost.
void note_other_members(const Zip& zip, const std::string& prefix, Checkpoint& checkpoint) {
  NameList others;
  for (const ZipMember& member : zip.members) {
    const std::string_view name = member.name;
    const bool is_below = name.starts_with(prefix);
    if (member.bytes == 0 || (is_below && is_part_of_a_checkpoint(name.substr(prefix.size())))) continue;
    others.add(is_below ? name.substr(prefix.size()) : name);
  }
  if (others.empty()) return;
  checkpoint.notes.push_back({"", "left out, since they are no tensors: " + others.text(), Note::Kind::remark});
}

}  // namespace

std::unordered_set<const ZipMember*> storage_members(const Zip& zip, const Limits& limits) {
  std::unordered_set<const ZipMember*> storages;
  const auto prefix = find_prefix(zip);
  if (!prefix) return storages;
  const std::string before(*prefix);
  if (const ZipMember* object = zip.find(before + std::string(kObject)))
    add_storages(zip, *object, before + "data/", limits, storages);
  if (const ZipMember* constants = zip.find(before + std::string(kConstants)))
    add_storages(zip, *constants, before + "constants/", limits, storages);
  return storages;
}

bool is_torch_zip(const Zip& zip) { return find_prefix(zip).has_value(); }

Checkpoint read_zip(const Zip& zip, const ReadOptions& options) try {
  const std::string prefix(find_prefix(zip).value());
  const bool is_script = zip.find(prefix + std::string(kConstants)) != nullptr;
  if (is_script && options.safety == Safety::strict) {
    throw Error(Errc::unsafe, "a TorchScript archive, which weights_only does not allow")
        .hint("Ballast never runs its code; leave out " + mention(Remedy::weights_only) + " to open the file");
  }
  prefetch_small_members(zip, prefix);
  Checkpoint checkpoint;
  checkpoint.format = is_script ? Format::torchscript : Format::torch_zip;
  const ZipReader reader(zip, prefix, options, checkpoint);
  reader.read(kObject, "data/", "");
  if (is_script) reader.read(kConstants, "constants/", "constants");
  note_other_members(zip, prefix, checkpoint);
  return checkpoint;
} catch (Error& error) {
  throw error.in(zip.source->name());
}

}  // namespace ballast::torch
