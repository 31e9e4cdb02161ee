#include "formats/archive/zip_tail.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string_view>

#include "core/checked.hpp"
#include "core/cursor.hpp"
#include "formats/archive/zip_format.hpp"

namespace ballast::archive {
namespace {

constexpr std::uint64_t kTailBytes = kEndRecordBytes + 0xFFFF;  // an end record, and the longest comment

class ZipTail {
 public:
  explicit ZipTail(const Source& source)
      : source_(source),
        first_(source.size_bytes() - std::min(source.size_bytes(), kTailBytes)),
        size_(static_cast<std::size_t>(source.size_bytes() - first_)),
        bytes_(std::make_unique_for_overwrite<std::byte[]>(size_)) {
    source.read(first_, {bytes_.get(), size_});
  }

  // Every file is searched when it is opened, so this looks for the byte of the signature that texts do not have.
  std::optional<std::uint64_t> find() const {
    constexpr std::size_t kLast = kEndRecord.size() - 1;
    for (std::size_t left = size_; left > kLast;) {
      const void* const found = memrchr(bytes_.get() + kLast, kEndRecord[kLast], left - kLast);
      if (found == nullptr) return std::nullopt;
      const auto at = static_cast<std::size_t>(static_cast<const std::byte*>(found) - bytes_.get()) - kLast;
      const bool is_record = std::memcmp(bytes_.get() + at, kEndRecord.data(), kLast) == 0;
      if (is_record && size_ - at >= kEndRecordBytes && leads_to_directory(first_ + at)) return first_ + at;
      left = at + kLast;
    }
    return std::nullopt;
  }

 private:
  bool leads_to_directory(std::uint64_t record) const {
    const auto bytes = std::span<const std::byte>(bytes_.get(), size_).subspan(record - first_);
    Cursor in(bytes, record);
    in.skip(kEndRecord.size() + 8, "end record");
    const std::uint64_t size = in.u32("size of the directory"), offset = in.u32("offset of the directory");
    return is_directory(record, size, offset) || has_zip64_directory(record);
  }

  // 1. signature PK 6 7, disk      4 + 4
  // 2. offset of the zip64 record  8
  bool has_zip64_directory(std::uint64_t record) const {
    const std::uint64_t locator = record - std::min(record, kZip64LocatorBytes);
    if (!begins_with(locator, kZip64Locator)) return false;
    const auto bytes = read<16>(locator);
    const std::uint64_t said =
        Cursor(std::span<const std::byte>(bytes).subspan(8)).u64("offset of the zip64 end record");
    const std::uint64_t before = locator - std::min(locator, kZip64EndRecordBytes);
    return is_zip64_record(before) || is_zip64_record(said);
  }

  bool is_zip64_record(std::uint64_t at) const {
    if (!is_inside(at, kZip64EndRecordBytes, source_.size_bytes()) || !begins_with(at, kZip64EndRecord)) return false;
    const auto bytes = read<kZip64EndRecordBytes>(at);
    Cursor in(std::span<const std::byte>(bytes).subspan(40), at);
    const std::uint64_t size = in.u64("size of the directory"), offset = in.u64("offset of the directory");
    return is_directory(at, size, offset);
  }

  // Python takes the bytes that end at the record, wherever they are said to begin; other readers go where the record
  // says.
  bool is_directory(std::uint64_t end, std::uint64_t size, std::uint64_t offset) const {
    if (size < kCentralHeaderBytes || size > end) return false;
    return begins_with(end - size, kCentralHeader) || begins_with(offset, kCentralHeader);
  }

  bool begins_with(std::uint64_t at, std::string_view signature) const {
    if (!is_inside(at, signature.size(), source_.size_bytes())) return false;
    const auto bytes = read<4>(at);
    return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()) == signature;
  }

  template <std::size_t size>
  std::array<std::byte, size> read(std::uint64_t at) const {
    std::array<std::byte, size> bytes;
    source_.read(at, bytes);
    return bytes;
  }

  const Source& source_;
  std::uint64_t first_;
  std::size_t size_;
  std::unique_ptr<std::byte[]> bytes_;  // from first_ to the end
};

}  // namespace

std::optional<std::uint64_t> find_zip_at_end(const Source& source) { return ZipTail(source).find(); }

}  // namespace ballast::archive
