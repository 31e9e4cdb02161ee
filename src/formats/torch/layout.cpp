#include "formats/torch/layout.hpp"

#include <ballast/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <unordered_set>
#include <utility>

#include "core/checked.hpp"
#include "formats/torch/encode.hpp"
#include "kernels/crc32.hpp"

namespace ballast::torch {
namespace {

constexpr std::uint64_t kAlignment = 64;
constexpr std::uint64_t kMax32 = 0xFFFFFFFF;
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 62;
constexpr std::uint64_t kLocalHeaderBytes = 30;
constexpr std::uint64_t kEntryBytes = 46;
constexpr std::uint64_t kExtraHeaderBytes = 4;  // a tag and a size

using Bytes = std::vector<std::byte>;

void append(Bytes& out, std::uint64_t value, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) out.push_back(static_cast<std::byte>(value >> (8 * i) & 0xFF));
}

void append_zeros(Bytes& out, std::size_t count) { out.insert(out.end(), count, std::byte{0}); }

void append(Bytes& out, std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  out.insert(out.end(), bytes.begin(), bytes.end());
}

struct Member {
  std::string name;
  std::uint64_t size;
  std::uint32_t crc32 = 0;
  std::uint64_t header_offset = 0, data_offset = 0;

  bool has_large_size() const { return size >= kMax32; }
  bool has_large_offset() const { return header_offset >= kMax32; }
  bool needs_zip64() const { return has_large_size() || has_large_offset(); }

  // Flag bit 3, which says that sizes and checksum come behind the data; there are none behind no data. Bit 11: UTF-8.
  std::uint16_t flags() const { return size != 0 ? 0x0808 : 0x0800; }

  std::uint64_t zip64_bytes() const {
    if (!needs_zip64()) return 0;
    return kExtraHeaderBytes + (has_large_size() ? 16u : 0u) + (has_large_offset() ? 8u : 0u);
  }
  std::uint64_t descriptor_bytes() const { return size == 0 ? 0 : needs_zip64() ? 24 : 16; }
  std::uint64_t entry_bytes() const { return kEntryBytes + name.size() + zip64_bytes(); }  // in the directory
};

// Gives a member its place from `offset` on. The padding that aligns its data is an extra field with a header.
void place(Member& member, std::uint64_t offset) {
  member.header_offset = offset;
  const std::uint64_t headers = kLocalHeaderBytes + member.name.size() + member.zip64_bytes() + kExtraHeaderBytes;
  member.data_offset = (offset + headers + kAlignment - 1) / kAlignment * kAlignment;
}

// Of the extra field, the local copy has no size after packing: when torch writes it, it does not know that yet.
void append_zip64(Bytes& out, const Member& member, std::uint64_t packed_size) {
  if (!member.needs_zip64()) return;
  append(out, 1, 2);
  append(out, member.zip64_bytes() - kExtraHeaderBytes, 2);
  if (member.has_large_size()) {
    append(out, member.size, 8);
    append(out, packed_size, 8);
  }
  if (member.has_large_offset()) append(out, member.header_offset, 8);
}

void append_local_header(Bytes& out, const Member& member) {
  const std::uint64_t extra_bytes = member.data_offset - member.header_offset - kLocalHeaderBytes - member.name.size();
  const std::uint64_t padding = extra_bytes - member.zip64_bytes() - kExtraHeaderBytes;
  append(out, "PK\3\4");
  append_zeros(out, 2);  // no version is needed
  append(out, member.flags(), 2);
  append_zeros(out, 2 + 4 + 4 + 4 + 4);  // stored, no time; checksum and sizes follow the data
  append(out, member.name.size(), 2);
  append(out, extra_bytes, 2);
  append(out, member.name);
  append_zip64(out, member, 0);
  append(out, "FB");
  append(out, padding, 2);
  out.insert(out.end(), padding, std::byte{'Z'});
}

void append_descriptor(Bytes& out, const Member& member) {
  if (member.size == 0) return;
  const std::size_t width = member.needs_zip64() ? 8 : 4;
  append(out, "PK\7\10");
  append(out, member.crc32, 4);
  append(out, member.size, width);
  append(out, member.size, width);
}

void append_member(Bytes& out, const Member& member, std::string_view content) {
  append_local_header(out, member);
  append(out, content);
  append_descriptor(out, member);
}

void append_directory_entry(Bytes& out, const Member& member) {
  append(out, "PK\1\2");
  append_zeros(out, 2 + 2);  // no version made it, none is needed
  append(out, member.flags(), 2);
  append_zeros(out, 2 + 4);  // stored, no time
  append(out, member.crc32, 4);
  append(out, std::min(member.size, kMax32), 4);
  append(out, std::min(member.size, kMax32), 4);
  append(out, member.name.size(), 2);
  append(out, member.zip64_bytes(), 2);
  append_zeros(out, 2 + 2 + 2 + 4);  // no comment, the first disk, no attributes
  append(out, std::min(member.header_offset, kMax32), 4);
  append(out, member.name);
  append_zip64(out, member, member.size);
}

constexpr std::uint64_t kEndBytes = 56 + 20 + 22;

// Always with the zip64 records, as torch writes them.
void append_end(Bytes& out, std::uint64_t count, std::uint64_t directory_offset, std::uint64_t directory_bytes) {
  append(out, "PK\6\6");
  append(out, 44, 8);  // bytes of what follows
  append(out, 0x031E, 2);
  append(out, 45, 2);
  append_zeros(out, 4 + 4);  // the first disk
  append(out, count, 8);
  append(out, count, 8);
  append(out, directory_bytes, 8);
  append(out, directory_offset, 8);

  append(out, "PK\6\7");
  append_zeros(out, 4);
  append(out, directory_offset + directory_bytes, 8);
  append(out, 1, 4);  // disk

  append(out, "PK\5\6");
  append_zeros(out, 2 + 2);
  append(out, std::min<std::uint64_t>(count, 0xFFFF), 2);
  append(out, std::min<std::uint64_t>(count, 0xFFFF), 2);
  append(out, std::min(directory_bytes, kMax32), 4);
  append(out, std::min(directory_offset, kMax32), 4);
  append_zeros(out, 2);  // no comment
}

// As torch names it: the file's name up to its last dot. It writes names that are not ASCII through another door, which
// does not know them.
std::string folder_for(std::string_view path) {
  std::string_view name = path.substr(path.find_last_of('/') + 1);
  if (const auto dot = name.rfind('.'); dot != name.npos) name = name.substr(0, dot);
  const bool is_ascii = std::all_of(name.begin(), name.end(), [](char c) { return c > 0; });
  return std::string(name.empty() || !is_ascii ? "archive" : name) + "/";
}

std::uint64_t combine_hashes(std::uint64_t seed, std::uint64_t value) {
  return seed ^ (value + 0x9E3779B9 + (seed << 6) + (seed >> 2));
}

// A zip of which everything is known but the checksums of the storages.
class Archive {
 public:
  Archive(std::string_view path, std::string_view pickle, std::span<const Record> records) : folder_(folder_for(path)) {
    add("data.pkl", pickle);
    add(".format_version", kFormatVersion);
    add(".storage_alignment", kStorageAlignment);
    add("byteorder", kByteOrder);
    first_ = members_.size();
    for (std::size_t i = 0; i < records.size(); ++i) add(fmt::format("data/{}", i), records[i].content.nbytes());
    last_ = members_.size();
    add("version", kVersion);
    add(".data/serialization_id", kIdBytes);
    directory_offset_ = end_;
    for (const Member& member : members_) end_ += member.entry_bytes();
  }

  std::span<const Member> storages() const { return std::span(members_).subspan(first_, last_ - first_); }
  std::uint64_t size_bytes() const { return end_ + kEndBytes; }

  Bytes head(std::string_view pickle) const {
    Bytes out;
    append_member(out, members_[0], pickle);
    append_member(out, members_[1], kFormatVersion);
    append_member(out, members_[2], kStorageAlignment);
    append_member(out, members_[3], kByteOrder);
    if (first_ != last_) append_local_header(out, members_[first_]);
    return out;
  }

  // A piece behind each storage; the last one goes to the end of the file.
  std::vector<Piece> pieces(std::span<const std::uint32_t> crc32s) && {
    std::vector<Piece> pieces;
    for (std::size_t i = first_; i < last_; ++i) {
      members_[i].crc32 = crc32s[i - first_];
      Piece& piece = pieces.emplace_back(Piece{members_[i].data_offset + members_[i].size, {}});
      append_descriptor(piece.bytes, members_[i]);
      if (i + 1 < last_) append_local_header(piece.bytes, members_[i + 1]);
    }
    if (pieces.empty()) pieces.push_back({members_[last_].header_offset, {}});
    append_tail(pieces.back().bytes);
    return pieces;
  }

 private:
  static constexpr std::string_view kFormatVersion = "1", kStorageAlignment = "64", kByteOrder = "little";
  static constexpr std::string_view kVersion = "3\n";
  static constexpr std::uint64_t kIdBytes = 40;

  void add(std::string_view name, std::string_view content) {
    add(name, std::uint64_t{content.size()});
    members_.back().crc32 = kernels::crc32(0, std::as_bytes(std::span(content)));
  }
  void add(std::string_view name, std::uint64_t size) {
    Member& member = members_.emplace_back(Member{folder_ + std::string(name), size});
    place(member, end_);
    // So far from 64 bits that headers can be added without a look.
    const auto end = checked_add(member.data_offset + member.descriptor_bytes(), size);
    if (!end || *end > kMostBytes) throw Error(Errc::limit, "the file would be larger than any file can be");
    end_ = *end;
  }

  void append_tail(Bytes& out) {
    append_member(out, members_[last_], kVersion);
    const std::string id = serialization_id();
    members_.back().crc32 = kernels::crc32(0, std::as_bytes(std::span(id)));
    append_member(out, members_.back(), id);
    for (const Member& member : members_) append_directory_entry(out, member);
    append_end(out, members_.size(), directory_offset_, end_ - directory_offset_);
  }

  // A hash of the names, in the order of a hash table, and one of the checksums, in the order of the file: both as
  // torch computes them, which leaves them to the standard library. To readers it is a text without a meaning.
  std::string serialization_id() const {
    std::unordered_set<std::string> names;
    std::uint64_t names_hash = 0, checksums_hash = 0;
    for (const Member& member : std::span(members_).first(members_.size() - 1)) {
      names.insert(member.name.substr(folder_.size()));
      if (member.size != 0) checksums_hash = combine_hashes(checksums_hash, member.crc32);
    }
    for (const std::string& name : names) names_hash = combine_hashes(names_hash, std::hash<std::string>()(name));
    return fmt::format("{:020}{:020}", names_hash, checksums_hash);
  }

  std::string folder_;  // with a slash
  std::vector<Member> members_;
  std::size_t first_ = 0, last_ = 0;  // of the storages among the members, and one past them
  std::uint64_t directory_offset_ = 0;
  std::uint64_t end_ = 0;  // of the members, and then of the directory
};

}  // namespace

Layout lay_out(std::span<const Leaf> leaves, std::string_view path) {
  Records records = assign_records(leaves);
  const Bytes pickle_bytes = encode_state_dict(leaves, records);
  const std::string_view pickle(reinterpret_cast<const char*>(pickle_bytes.data()), pickle_bytes.size());
  const auto archive = std::make_shared<const Archive>(path, pickle, records.records);

  Layout layout{archive->head(pickle), {}, archive->size_bytes(), {}, std::move(records.notes)};
  layout.items.reserve(records.records.size());
  for (std::size_t i = 0; i < records.records.size(); ++i) {
    Record& record = records.records[i];
    layout.items.push_back({record.name, std::move(record.content), archive->storages()[i].data_offset});
  }
  layout.finish = [archive](std::span<const std::uint32_t> crc32s) { return Archive(*archive).pieces(crc32s); };
  return layout;
}

}  // namespace ballast::torch
