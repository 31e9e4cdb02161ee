#include "formats/torch/layout.hpp"

#include <ballast/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <unordered_set>
#include <utility>

#include "formats/archive/zip_writer.hpp"
#include "formats/torch/encode.hpp"
#include "kernels/crc32.hpp"

namespace ballast::torch {
namespace {

using Bytes = archive::ZipWriter::Bytes;

// Names the folder as torch does: the file's name up to its last dot. torch writes a file whose name is not ASCII
// through a Python file object, which gives it no name.
std::string folder_for(std::string_view path) {
  std::string_view name = path.substr(path.find_last_of('/') + 1);
  if (const auto dot = name.rfind('.'); dot != name.npos) name = name.substr(0, dot);
  const bool is_ascii = std::all_of(name.begin(), name.end(), [](char c) { return c > 0; });
  return std::string(name.empty() || !is_ascii ? "archive" : name) + "/";
}

std::uint64_t combine_hashes(std::uint64_t seed, std::uint64_t value) {
  return seed ^ (value + 0x9E3779B9 + (seed << 6) + (seed >> 2));
}

// A zip in which everything is known except the checksums of the storages.
class Archive {
 public:
  Archive(std::string_view path, std::string_view pickle, std::span<const Record> records) : folder_(folder_for(path)) {
    add("data.pkl", pickle);
    add(".format_version", kFormatVersion);
    add(".storage_alignment", kStorageAlignment);
    add("byteorder", kByteOrder);
    first_ = zip_.members().size();
    for (std::size_t i = 0; i < records.size(); ++i)
      zip_.add(fmt::format("{}data/{}", folder_, i), records[i].content.nbytes());
    last_ = zip_.members().size();
    add("version", kVersion);
    zip_.add(folder_ + ".data/serialization_id", kIdBytes);
  }

  std::span<const archive::WrittenMember> storages() const { return zip_.members().subspan(first_, last_ - first_); }
  std::uint64_t size_bytes() const { return zip_.size_bytes(); }

  Bytes head(std::string_view pickle) const {
    const auto members = zip_.members();
    Bytes out;
    zip_.append(out, members[0], pickle);
    zip_.append(out, members[1], kFormatVersion);
    zip_.append(out, members[2], kStorageAlignment);
    zip_.append(out, members[3], kByteOrder);
    if (first_ != last_) zip_.append_header(out, members[first_]);
    return out;
  }

  // Makes a piece behind each storage; the last piece reaches to the end of the file.
  std::vector<SavePlan::Piece> pieces(std::span<const std::uint32_t> crc32s) && {
    const auto members = zip_.members();
    std::vector<SavePlan::Piece> pieces;
    for (std::size_t i = first_; i < last_; ++i) {
      members[i].crc32 = crc32s[i - first_];
      SavePlan::Piece& piece = pieces.emplace_back(SavePlan::Piece{members[i].data_end(), {}});
      zip_.append_descriptor(piece.bytes, members[i]);
      if (i + 1 < last_) zip_.append_header(piece.bytes, members[i + 1]);
    }
    if (pieces.empty()) pieces.push_back({members[last_].header_offset, {}});
    append_tail(pieces.back().bytes);
    return pieces;
  }

 private:
  static constexpr std::string_view kFormatVersion = "1", kStorageAlignment = "64", kByteOrder = "little";
  static constexpr std::string_view kVersion = "3\n";
  static constexpr std::uint64_t kIdBytes = 40;

  void add(std::string_view name, std::string_view content) { zip_.add(folder_ + std::string(name), content); }

  void append_tail(Bytes& out) {
    zip_.append(out, zip_.members()[last_], kVersion);
    const std::string id = serialization_id();
    zip_.members().back().crc32 = kernels::crc32(0, std::as_bytes(std::span(id)));
    zip_.append(out, zip_.members().back(), id);
    zip_.append_directory(out);
  }

  // A hash of the names, in the order of a hash table, and a hash of the checksums, in the order of the file: both as
  // torch computes them with the standard library. To readers the id is a text without a meaning.
  std::string serialization_id() const {
    std::unordered_set<std::string> names;
    std::uint64_t names_hash = 0, checksums_hash = 0;
    for (const archive::WrittenMember& member : zip_.members().first(zip_.members().size() - 1)) {
      names.insert(member.name.substr(folder_.size()));
      if (member.size != 0) checksums_hash = combine_hashes(checksums_hash, member.crc32);
    }
    for (const std::string& name : names) names_hash = combine_hashes(names_hash, std::hash<std::string>()(name));
    return fmt::format("{:020}{:020}", names_hash, checksums_hash);
  }

  std::string folder_;  // with a slash
  archive::ZipWriter zip_{archive::ZipStyle::torch};
  std::size_t first_ = 0, last_ = 0;  // the first storage among the members, and one past the last
};

}  // namespace

SavePlan::File lay_out(std::span<const Leaf> leaves, const std::string& path, std::vector<Note>& notes) {
  Records records = assign_records(leaves);
  for (Note& note : records.notes) notes.push_back({path, std::move(note.text), note.kind});
  const Bytes pickle_bytes = encode_state_dict(leaves, records);
  const std::string_view pickle(reinterpret_cast<const char*>(pickle_bytes.data()), pickle_bytes.size());
  const auto archive = std::make_shared<const Archive>(path, pickle, records.records);

  SavePlan::File file{path, archive->head(pickle), {}, archive->size_bytes(), leaves.size()};
  file.items.reserve(records.records.size());
  for (std::size_t i = 0; i < records.records.size(); ++i) {
    Record& record = records.records[i];
    file.items.push_back({std::string(record.name), std::move(record.content), archive->storages()[i].data_offset});
  }
  file.finish = [archive](std::span<const std::uint32_t> crc32s) { return Archive(*archive).pieces(crc32s); };
  return file;
}

namespace {

class TorchLayouts final : public Layouts {
 public:
  explicit TorchLayouts(const Checkpoint& checkpoint) {
    Entries entries;
    for (const auto& entry : checkpoint) entries.push_back(&entry);
    leaves_ = leaves_of(entries, checkpoint.composites);
  }

  std::string_view name(std::size_t value) const override { return leaves_[value].name; }
  std::vector<Bundle> bundles() const override { return bundles_of(leaves_); }

  SavePlan::File lay_out(std::span<const std::size_t> values, const FilePlace& place,
                         std::vector<Note>& notes) const override {
    std::vector<Leaf> chosen;
    chosen.reserve(values.size());
    for (const std::size_t value : values) chosen.push_back(leaves_[value]);
    return torch::lay_out(chosen, place.path, notes);
  }

 private:
  std::vector<Leaf> leaves_;
};

}  // namespace

std::unique_ptr<Layouts> layouts(const Checkpoint& checkpoint, const SaveOptions&) {
  return std::make_unique<TorchLayouts>(checkpoint);
}

}  // namespace ballast::torch
