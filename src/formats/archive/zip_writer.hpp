// The bytes of a zip that is to be written, except the data: its members are stored as they are, at multiples of 64
// bytes. All offsets are known before any data are; checksums are filled in when they are known.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ballast::archive {

// `torch` is byte for byte what PyTorch writes, with sizes and checksums behind the data; `plain` has them before the
// data.
enum class ZipStyle : std::uint8_t { plain, torch };

struct WrittenMember {
  std::string name;
  std::uint64_t size = 0;
  std::uint32_t crc32 = 0;
  std::uint64_t header_offset = 0, data_offset = 0;

  std::uint64_t data_end() const noexcept { return data_offset + size; }
};

class ZipWriter {
 public:
  using Bytes = std::vector<std::byte>;

  explicit ZipWriter(ZipStyle style) : style_(style) {}

  // Adds a member behind the others. Throws Errc::limit if no file can be so large.
  WrittenMember& add(std::string name, std::uint64_t size);
  WrittenMember& add(std::string name, std::string_view content);  // with its checksum

  std::span<WrittenMember> members() noexcept { return members_; }
  std::span<const WrittenMember> members() const noexcept { return members_; }
  std::uint64_t size_bytes() const;  // of the file with these members

  // The bytes around the data, in this order. append() writes a whole member, if its data, `content`, are at hand.
  void append_header(Bytes& out, const WrittenMember& member) const;
  void append_descriptor(Bytes& out, const WrittenMember& member) const;  // nothing in a plain zip
  void append(Bytes& out, const WrittenMember& member, std::string_view content) const;
  void append_directory(Bytes& out) const;  // and the end records

 private:
  std::uint64_t descriptor_bytes(const WrittenMember& member) const;
  std::uint64_t zip64_bytes(const WrittenMember& member, bool is_central) const;
  std::uint16_t flags(const WrittenMember& member) const;
  std::uint16_t version(const WrittenMember& member) const;
  void append_zip64(Bytes& out, const WrittenMember& member, bool is_central) const;
  void append_entry(Bytes& out, const WrittenMember& member) const;
  void append_end(Bytes& out, std::uint64_t directory_bytes) const;
  std::uint64_t directory_bytes() const;
  bool has_zip64_end() const;

  ZipStyle style_;
  std::vector<WrittenMember> members_;
  std::uint64_t end_ = 0;  // where the members end and the directory begins
};

}  // namespace ballast::archive
