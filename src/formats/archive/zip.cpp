#include "formats/archive/zip.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <ballast/error.hpp>

#include "core/remedy.hpp"
#include "core/text.hpp"
#include "formats/archive/header_window.hpp"
#include "formats/archive/inflate_storage.hpp"
#include "formats/archive/late_member.hpp"
#include "formats/archive/zip_central.hpp"
#include "formats/archive/zip_end.hpp"
#include "formats/archive/zip_format.hpp"
#include "formats/archive/zip_local.hpp"
#include "formats/archive/zip_report.hpp"
#include "formats/archive/zip_salvage.hpp"
#include "io/section.hpp"
#include "tensor/source_storage.hpp"

namespace ballast::archive {
namespace {

// A range of the file that has a checksum.
class StoredMember final : public Storage {
 public:
  StoredMember(StoragePtr range, std::uint32_t crc32) : range_(std::move(range)), crc32_(crc32) {}

  std::optional<std::uint32_t> declared_crc32() const override { return crc32_; }

  std::uint64_t size_bytes() const override { return range_->size_bytes(); }
  void read(std::uint64_t offset, std::span<std::byte> out) const override { range_->read(offset, out); }
  void read_many(std::span<const Range> ranges) const override { range_->read_many(ranges); }
  void prefetch(std::span<const ByteRange> ranges) const override { range_->prefetch(ranges); }
  std::span<const std::byte> mapped() const override { return range_->mapped(); }
  bool visit(std::uint64_t offset, std::uint64_t size,
             const std::function<void(std::span<const std::byte>)>& look) const override {
    return range_->visit(offset, size, look);
  }
  void release(std::uint64_t offset, std::uint64_t size) const override { range_->release(offset, size); }
  std::optional<Location> location() const override { return range_->location(); }
  void check_unchanged() const override { range_->check_unchanged(); }

 private:
  StoragePtr range_;
  std::uint32_t crc32_;
};

[[noreturn]] void refuse_method(const Zip& zip, const ZipMember& member) {
  throw Error(Errc::unsupported, fmt::format("member {} is packed by method {}", quote(member.name), member.method))
      .in(zip.source->name())
      .at_byte(member.header_offset);
}

bool is_late(const ZipMember& member) { return member.data_offset == 0; }

std::string name_of(const Zip& zip, const ZipMember& member) { return zip.source->name() + "!/" + member.name; }

ZipDirectoryState state_of(const std::optional<ZipDirectory>& directory) {
  if (!directory) return ZipDirectoryState::missing;
  return directory->is_the_only_one ? ZipDirectoryState::sound : ZipDirectoryState::doubtful;
}

}  // namespace

const ZipMember* Zip::find(std::string_view name) const noexcept {
  const auto found =
      std::find_if(members.begin(), members.end(), [&](const ZipMember& member) { return member.name == name; });
  return found == members.end() ? nullptr : &*found;
}

bool looks_like_zip(std::span<const std::byte> first_bytes) {
  const std::string_view text(reinterpret_cast<const char*>(first_bytes.data()), first_bytes.size());
  return text.starts_with(kLocalHeader) || text.starts_with(kEndRecord);
}

Zip read_zip(const SourcePtr& source, const Limits& limits, ZipReading reading) {
  ZipReport report(*source, reading);
  HeaderWindow window(*source);
  Zip zip{.source = source, .members = {}, .findings = {}, .reading = reading};

  const auto directory = find_directory(*source, window, report);
  if (directory) {
    zip.members = read_central_directory(*directory, window, limits, report);
    if (report.is_strict() && source->bytes_per_round_trip() != 0)
      put_off_local_headers(*directory, zip.members, report);
    else
      read_local_headers(*source, *directory, window, zip.members, report);
  }
  if (reading == ZipReading::lenient) {
    if (report.has_findings()) add_unlisted_members(*source, state_of(directory), zip.members, limits, report);
    bound_overlaps(*source, zip.members, report);
    measure_deflated_members(*source, zip.members, limits, report);
  }
  zip.findings = report.take_findings();
  return zip;
}

StoragePtr member_storage(const Zip& zip, const ZipMember& member) {
  const SourcePtr source = is_late(member) ? late_member(zip.source, member, name_of(zip, member)) : zip.source;
  switch (member.method) {
    case kStored:
      return std::make_shared<StoredMember>(source_storage(source, member.data_offset, member.packed_bytes),
                                            member.crc32);
    case kDeflated:
      return inflate_storage(source, {member.name, member.data_offset, member.packed_bytes, member.bytes, member.crc32},
                             zip.reading == ZipReading::strict ? StreamEnd::exact : StreamEnd::ignored);
    default: refuse_method(zip, member);
  }
}

SourcePtr member_source(const Zip& zip, const ZipMember& member, const Limits& limits) {
  std::string name = name_of(zip, member);
  if (member.is_stored() && is_late(member)) return late_member(zip.source, member, std::move(name));
  if (member.is_stored()) return io::section(zip.source, member.data_offset, member.packed_bytes, std::move(name));

  if (member.bytes > limits.max_inflated_bytes)
    throw Error(Errc::limit,
                fmt::format("inflates to {} bytes, more than the {} allowed", member.bytes, limits.max_inflated_bytes))
        .in(name)
        .hint("unpack the archive first, or " + raise_limit("max_inflated_bytes"));
  // The declared size is at most 1032 times that of the packed bytes, which are there, so it is safe to allocate.
  const StoragePtr inflated = member_storage(zip, member);
  std::vector<std::byte> bytes(static_cast<std::size_t>(member.bytes));
  inflated->read(0, bytes);
  return memory_source(std::move(bytes), std::move(name));
}

void prefetch(const Zip& zip, std::span<const ZipMember* const> members) {
  std::vector<ByteRange> ranges;
  for (const ZipMember* member : members) {
    const bool late = is_late(*member);
    const std::uint64_t first = late ? member->header_offset : member->data_offset;
    ranges.push_back({first, late ? member->next_offset - first : member->packed_bytes});
  }
  zip.source->prefetch(ranges);
}

}  // namespace ballast::archive
