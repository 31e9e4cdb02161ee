#include "formats/archive/late_member.hpp"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "core/once.hpp"
#include "formats/archive/zip_local.hpp"
#include "io/section.hpp"

namespace ballast::archive {
namespace {

class LateMember final : public Source {
 public:
  LateMember(SourcePtr zip, ZipMember member, std::string name)
      : zip_(std::move(zip)), name_(std::move(name)), member_(std::move(member)) {}

  const std::string& name() const override { return name_; }
  std::uint64_t size_bytes() const override { return member_.packed_bytes; }
  std::uint64_t bytes_per_round_trip() const override { return zip_->bytes_per_round_trip(); }
  std::string identity() const override { return zip_->identity(); }
  void check_unchanged() const override { zip_->check_unchanged(); }

  // The location is not known before the header was read.
  std::optional<FileLocation> location(std::uint64_t offset) const override {
    return once_.is_done() ? zip_->location(member_.data_offset + offset) : std::nullopt;
  }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    const ReadRange one[] = {{offset, out}};
    read_many(one);
  }
  void read_many(std::span<const ReadRange> ranges) const override {
    for (const ReadRange& range : ranges) io::require_inside(*this, range.offset, range.out.size());
    check_header();
    if (kept_.empty()) return zip_->read_many(io::shifted(ranges, member_.data_offset));
    for (const ReadRange& range : ranges) {
      if (!range.out.empty()) std::memcpy(range.out.data(), kept_.data() + range.offset, range.out.size());
    }
  }

  // Fetches the header, too, and behind each range as many bytes as the data may begin later than usual.
  void prefetch(std::span<const ByteRange> ranges) const override {
    if (once_.is_done()) return zip_->prefetch(io::shifted(ranges, member_.data_offset));
    if (is_small()) return zip_->prefetch(std::vector{whole()});
    std::vector<ByteRange> wanted = ranges_of_local_header(member_);
    const std::uint64_t beside_data = whole().size - member_.packed_bytes;
    for (const ByteRange& range : ranges)
      wanted.push_back({member_.header_offset + range.offset, range.size + beside_data});
    zip_->prefetch(wanted);
  }

 private:
  ByteRange whole() const { return {member_.header_offset, member_.next_offset - member_.header_offset}; }
  bool is_small() const { return whole().size <= zip_->bytes_per_round_trip(); }

  void check_header() const {
    once_.run([this] {
      HeaderWindow window(*zip_);
      ZipReport report(*zip_, ZipReading::strict);
      window.load(is_small() ? std::vector{whole()} : ranges_of_local_header(member_));
      ZipMember checked = member_;
      check_local_header(checked, window, report);
      if (is_small()) {
        const auto data = window.at(checked.data_offset, checked.packed_bytes);
        kept_.assign(data.begin(), data.end());
      }
      member_.data_offset = checked.data_offset;
    });
  }

  SourcePtr zip_;
  std::string name_;
  mutable Once once_;
  mutable ZipMember member_;             // its data_offset is filled in once
  mutable std::vector<std::byte> kept_;  // all of a small member
};

}  // namespace

SourcePtr late_member(SourcePtr zip, ZipMember member, std::string name) {
  return std::make_shared<LateMember>(std::move(zip), std::move(member), std::move(name));
}

}  // namespace ballast::archive
