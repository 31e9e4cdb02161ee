#include "formats/archive/zip_writer.hpp"

#include <algorithm>
#include <utility>

#include <ballast/error.hpp>

#include "core/checked.hpp"
#include "formats/archive/zip_format.hpp"
#include "kernels/crc32.hpp"

namespace ballast::archive {
namespace {

using Bytes = ZipWriter::Bytes;

constexpr std::uint64_t kAlignment = 64;
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 62;
constexpr std::uint64_t kExtraHeaderBytes = 4;  // a tag and a size
constexpr std::uint16_t kPlainVersion = 20, kZip64Version = 45;
constexpr std::uint16_t kNoDate = 1 << 5 | 1;  // 1 January 1980: zero is not a date

void put(Bytes& out, std::uint64_t value, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) out.push_back(static_cast<std::byte>(value >> (8 * i) & 0xFF));
}

void put_zeros(Bytes& out, std::size_t count) { out.insert(out.end(), count, std::byte{0}); }

void put(Bytes& out, std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  out.insert(out.end(), bytes.begin(), bytes.end());
}

bool has_large_size(const WrittenMember& member) { return member.size >= kIn64; }
bool has_large_offset(const WrittenMember& member) { return member.header_offset >= kIn64; }
bool needs_zip64(const WrittenMember& member) { return has_large_size(member) || has_large_offset(member); }

bool is_ascii(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

}  // namespace

// The padding that aligns the data is an extra field with a header.
WrittenMember& ZipWriter::add(std::string name, std::uint64_t size) {
  WrittenMember& member = members_.emplace_back(WrittenMember{std::move(name), size});
  member.header_offset = end_;
  const std::uint64_t headers = kLocalHeaderBytes + member.name.size() + zip64_bytes(member, false) + kExtraHeaderBytes;
  member.data_offset = (end_ + headers + kAlignment - 1) / kAlignment * kAlignment;
  // This limit is so far below 64 bits that headers can be added without a check.
  const auto end = checked_add(member.data_offset + descriptor_bytes(member), size);
  if (!end || *end > kMostBytes) throw Error(Errc::limit, "the file would be larger than any file can be");
  end_ = *end;
  return member;
}

WrittenMember& ZipWriter::add(std::string name, std::string_view content) {
  WrittenMember& member = add(std::move(name), std::uint64_t{content.size()});
  member.crc32 = kernels::crc32(0, std::as_bytes(std::span(content)));
  return member;
}

// PyTorch's flags say that sizes and checksum come behind the data, unless there are no data.
std::uint16_t ZipWriter::flags(const WrittenMember& member) const {
  if (style_ == ZipStyle::plain) return is_ascii(member.name) ? 0 : kNameIsUtf8;
  return member.size != 0 ? kHasDescriptor | kNameIsUtf8 : kNameIsUtf8;
}

// PyTorch writes no version.
std::uint16_t ZipWriter::version(const WrittenMember& member) const {
  if (style_ == ZipStyle::torch) return 0;
  return needs_zip64(member) ? kZip64Version : kPlainVersion;
}

std::uint64_t ZipWriter::descriptor_bytes(const WrittenMember& member) const {
  if (style_ == ZipStyle::plain || member.size == 0) return 0;
  return needs_zip64(member) ? 24 : 16;
}

// In local headers, only PyTorch says where the header is.
std::uint64_t ZipWriter::zip64_bytes(const WrittenMember& member, bool is_central) const {
  const bool says_offset = has_large_offset(member) && (is_central || style_ == ZipStyle::torch);
  if (!has_large_size(member) && !says_offset) return 0;
  return kExtraHeaderBytes + (has_large_size(member) ? 16u : 0u) + (says_offset ? 8u : 0u);
}

// PyTorch's local header has no packed size: when torch writes the header, it does not know that size yet.
void ZipWriter::append_zip64(Bytes& out, const WrittenMember& member, bool is_central) const {
  const std::uint64_t size = zip64_bytes(member, is_central);
  if (size == 0) return;
  put(out, 1, 2);
  put(out, size - kExtraHeaderBytes, 2);
  if (has_large_size(member)) {
    put(out, member.size, 8);
    put(out, is_central || style_ == ZipStyle::plain ? member.size : 0, 8);
  }
  if (size != kExtraHeaderBytes + (has_large_size(member) ? 16u : 0u)) put(out, member.header_offset, 8);
}

void ZipWriter::append_header(Bytes& out, const WrittenMember& member) const {
  const std::uint64_t extra_bytes = member.data_offset - member.header_offset - kLocalHeaderBytes - member.name.size();
  const std::uint64_t padding = extra_bytes - zip64_bytes(member, false) - kExtraHeaderBytes;
  const bool is_plain = style_ == ZipStyle::plain;
  put(out, kLocalHeader);
  put(out, version(member), 2);
  put(out, flags(member), 2);
  put(out, kStored, 2);
  put_zeros(out, 2);  // no time
  put(out, is_plain ? kNoDate : 0, 2);
  put(out, is_plain ? member.crc32 : 0, 4);
  put(out, is_plain ? std::min(member.size, kIn64) : 0, 4);
  put(out, is_plain ? std::min(member.size, kIn64) : 0, 4);
  put(out, member.name.size(), 2);
  put(out, extra_bytes, 2);
  put(out, member.name);
  append_zip64(out, member, false);
  put(out, "FB");
  put(out, padding, 2);
  out.insert(out.end(), static_cast<std::size_t>(padding), std::byte{'Z'});
}

void ZipWriter::append_descriptor(Bytes& out, const WrittenMember& member) const {
  if (descriptor_bytes(member) == 0) return;
  const std::size_t width = needs_zip64(member) ? 8 : 4;
  put(out, kDescriptor);
  put(out, member.crc32, 4);
  put(out, member.size, width);
  put(out, member.size, width);
}

void ZipWriter::append(Bytes& out, const WrittenMember& member, std::string_view content) const {
  append_header(out, member);
  put(out, content);
  append_descriptor(out, member);
}

void ZipWriter::append_entry(Bytes& out, const WrittenMember& member) const {
  put(out, kCentralHeader);
  put(out, version(member), 2);  // the version that made it, then the version that is needed
  put(out, version(member), 2);
  put(out, flags(member), 2);
  put(out, kStored, 2);
  put_zeros(out, 2);  // no time
  put(out, style_ == ZipStyle::plain ? kNoDate : 0, 2);
  put(out, member.crc32, 4);
  put(out, std::min(member.size, kIn64), 4);
  put(out, std::min(member.size, kIn64), 4);
  put(out, member.name.size(), 2);
  put(out, zip64_bytes(member, true), 2);
  put_zeros(out, 2 + 2 + 2 + 4);  // no comment, the first disk, no attributes
  put(out, std::min(member.header_offset, kIn64), 4);
  put(out, member.name);
  append_zip64(out, member, true);
}

std::uint64_t ZipWriter::directory_bytes() const {
  std::uint64_t size = 0;
  for (const WrittenMember& member : members_)
    size += kCentralHeaderBytes + member.name.size() + zip64_bytes(member, true);
  return size;
}

bool ZipWriter::has_zip64_end() const {
  return style_ == ZipStyle::torch || members_.size() >= kIn64Short || end_ >= kIn64 || directory_bytes() >= kIn64;
}

std::uint64_t ZipWriter::size_bytes() const {
  const std::uint64_t zip64 = has_zip64_end() ? kZip64EndRecordBytes + kZip64LocatorBytes : 0;
  return end_ + directory_bytes() + zip64 + kEndRecordBytes;
}

void ZipWriter::append_directory(Bytes& out) const {
  for (const WrittenMember& member : members_) append_entry(out, member);
  append_end(out, directory_bytes());
}

void ZipWriter::append_end(Bytes& out, std::uint64_t directory_bytes) const {
  const std::uint64_t count = members_.size();
  if (has_zip64_end()) {
    put(out, kZip64EndRecord);
    put(out, kZip64EndRecordBytes - 12, 8);  // bytes that follow
    put(out, style_ == ZipStyle::torch ? 0x031E : kZip64Version, 2);
    put(out, kZip64Version, 2);
    put_zeros(out, 4 + 4);  // the first disk
    put(out, count, 8);
    put(out, count, 8);
    put(out, directory_bytes, 8);
    put(out, end_, 8);

    put(out, kZip64Locator);
    put_zeros(out, 4);
    put(out, end_ + directory_bytes, 8);
    put(out, 1, 4);  // one disk
  }
  put(out, kEndRecord);
  put_zeros(out, 2 + 2);
  put(out, std::min(count, kIn64Short), 2);
  put(out, std::min(count, kIn64Short), 2);
  put(out, std::min(directory_bytes, kIn64), 4);
  put(out, std::min(end_, kIn64), 4);
  put_zeros(out, 2);  // no comment
}

}  // namespace ballast::archive
