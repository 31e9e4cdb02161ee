#include "formats/archive/zip_salvage.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "core/checked.hpp"
#include "core/cursor.hpp"
#include "core/remedy.hpp"
#include "core/text.hpp"
#include "formats/archive/inflate_storage.hpp"
#include "formats/archive/zip_format.hpp"
#include "formats/archive/zip_local.hpp"

namespace ballast::archive {

namespace {

constexpr std::uint64_t kMaxOverlap = 4;        // times the size of the file
constexpr std::uint64_t kReadAhead = 64 << 10;  // one read serves many small members

// Finds a text from the beginning of a source to its end, in one pass.
class Search {
 public:
  Search(const Source& source, std::string_view text) : source_(source), text_(text) {}

  std::optional<std::uint64_t> next(std::uint64_t from) {
    while (is_inside(from, text_.size(), source_.size_bytes())) {
      if (from < begin_ || !is_inside(from - begin_, text_.size(), buffer_.size())) load(from);
      const auto found = buffer_.find(text_, static_cast<std::size_t>(from - begin_));
      if (found != buffer_.npos) return begin_ + found;
      from = begin_ + buffer_.size() - (text_.size() - 1);  // the text may lie across the end of the buffer
    }
    return std::nullopt;
  }

 private:
  void load(std::uint64_t from) {
    constexpr std::uint64_t kBytes = 256 << 10;
    buffer_.resize(static_cast<std::size_t>(std::min(source_.size_bytes() - from, kBytes)));
    source_.read(from, std::as_writable_bytes(std::span(buffer_)));
    begin_ = from;
  }

  const Source& source_;
  std::string_view text_;
  std::string buffer_;
  std::uint64_t begin_ = 0;
};

struct Extent {
  std::uint64_t begin, end;
};

// Where members lie, headers included. The extents are sorted, and joined if they touch.
std::vector<Extent> extents_of(const std::vector<ZipMember>& members) {
  std::vector<Extent> all;
  for (const ZipMember& member : members)
    all.push_back({member.header_offset, member.data_offset + member.packed_bytes});
  std::sort(all.begin(), all.end(), [](const Extent& a, const Extent& b) { return a.begin < b.begin; });
  std::vector<Extent> joined;
  for (const Extent& extent : all) {
    if (joined.empty() || joined.back().end < extent.begin)
      joined.push_back(extent);
    else
      joined.back().end = std::max(joined.back().end, extent.end);
  }
  return joined;
}

std::vector<std::uint64_t> header_offsets_of(const std::vector<ZipMember>& members) {
  std::vector<std::uint64_t> offsets;
  for (const ZipMember& member : members) offsets.push_back(member.header_offset);
  std::sort(offsets.begin(), offsets.end());
  return offsets;
}

class Salvage {
 public:
  Salvage(const Source& source, ZipDirectoryState directory, std::vector<ZipMember>& members, const Limits& limits,
          ZipReport& report)
      : source_(source),
        directory_(directory),
        window_(source),
        headers_(source, kLocalHeader),
        signatures_(source, kLocalHeader.substr(0, 2)),
        members_(members),
        limits_(limits),
        report_(report) {}

  void run() {
    const auto known_headers = header_offsets_of(members_);
    const auto explained = directory_ == ZipDirectoryState::sound ? extents_of(members_) : std::vector<Extent>{};
    auto extent = explained.begin();
    std::uint64_t at = 0;
    while (const auto found = headers_.next(at)) {
      while (extent != explained.end() && extent->end <= *found) ++extent;
      const bool is_explained = extent != explained.end() && extent->begin <= *found;
      const bool is_known = std::binary_search(known_headers.begin(), known_headers.end(), *found);
      if (is_explained)
        at = extent->end;
      else
        at = is_known ? *found + kLocalHeader.size() : add(*found);
    }
  }

 private:
  // Returns where to look for the next one: behind the name, because not even the extra field is to be trusted.
  std::uint64_t add(std::uint64_t offset) {
    const std::uint64_t go_on = offset + kLocalHeader.size();
    ZipLocalHeader local;
    try {
      window_.at(offset, kLocalHeaderBytes, kReadAhead);
      local = read_local_header(offset, window_, report_);
    } catch (const Error& error) {
      if (error.code() != Errc::malformed) throw;
      return go_on;
    }
    ZipMember& member = local.member;
    const bool is_plausible =
        !member.name.empty() && member.name.find('\0') == std::string::npos && (local.version & 0xFF) <= kNewestVersion;
    if (!is_plausible) return go_on;

    if ((member.flags & kHasDescriptor) != 0 && member.packed_bytes == 0) find_data_end(member);
    member.packed_bytes = std::min(member.packed_bytes, source_.size_bytes() - member.data_offset);
    if (member.is_stored()) member.bytes = member.packed_bytes;
    if (directory_ != ZipDirectoryState::missing && !report_.is_full())
      report_.add(
          Error(Errc::malformed, fmt::format("member {} is not in the directory", quote(member.name))).at_byte(offset));
    if (members_.size() >= limits_.max_archive_members)
      throw Error(Errc::limit, fmt::format("has more members than the {} allowed", limits_.max_archive_members))
          .hint(raise_limit("max_archive_members"));
    const std::uint64_t behind_name = offset + kLocalHeaderBytes + member.name.size();
    members_.push_back(std::move(member));
    return behind_name;
  }

  // If no header says how many data there are, they end at a descriptor that says so, or where something else begins.
  void find_data_end(ZipMember& member) {
    std::uint64_t end = source_.size_bytes();
    auto found = signatures_.next(member.data_offset);
    for (; found && is_inside(*found, kDescriptor.size(), end); found = signatures_.next(*found + 1)) {
      const auto bytes = window_.at(*found, kDescriptor.size(), kReadAhead);
      const std::string_view signature(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      const bool is_header = signature == kLocalHeader || signature == kCentralHeader;
      if (is_header || (signature == kDescriptor && take_descriptor(*found, member))) {
        end = *found;
        break;
      }
    }
    member.packed_bytes = end - member.data_offset;
  }

  bool take_descriptor(std::uint64_t offset, ZipMember& member) {
    if (!is_inside(offset, 16, source_.size_bytes())) return false;
    Cursor in(window_.at(offset, 16), offset);
    in.skip(kDescriptor.size(), "descriptor");
    const std::uint32_t crc32 = in.u32("CRC-32");
    const std::uint64_t low = in.u32("packed size");
    const std::uint64_t high = in.u32("packed size");  // or the unpacked size, in a short descriptor
    const std::uint64_t packed_bytes = offset - member.data_offset;
    if (low != packed_bytes && (high << 32 | low) != packed_bytes) return false;
    member.crc32 = crc32;
    return true;
  }

  const Source& source_;
  ZipDirectoryState directory_;
  HeaderWindow window_;
  Search headers_, signatures_;
  std::vector<ZipMember>& members_;
  const Limits& limits_;
  ZipReport& report_;
};

}  // namespace

void add_unlisted_members(const Source& source, ZipDirectoryState directory, std::vector<ZipMember>& members,
                          const Limits& limits, ZipReport& report) {
  Salvage(source, directory, members, limits, report).run();
}

void bound_overlaps(const Source& source, std::vector<ZipMember>& members, ZipReport& report) {
  std::uint64_t left = fits(checked_mul(source.size_bytes(), kMaxOverlap), "four times the file");
  const auto is_too_much = [&](const ZipMember& member) {
    if (member.packed_bytes > left) return true;
    left -= member.packed_bytes;
    return false;
  };
  const std::uint64_t dropped = std::erase_if(members, is_too_much);
  if (dropped != 0) report.note({0, fmt::format("the members overlap so often that {} of them are left out", dropped)});
}

void measure_deflated_members(const Source& source, std::vector<ZipMember>& members, const Limits& limits,
                              ZipReport& report) {
  std::uint64_t left = limits.max_inflated_bytes;
  for (ZipMember& member : members) {
    if (member.method != kDeflated) continue;
    const InflatedSize real = measure_inflated(source, member.data_offset, member.packed_bytes, left);
    left -= real.bytes;
    const auto complain = [&](const std::string& what) {
      report.add(
          Error(Errc::malformed, fmt::format("member {} {}", quote(member.name), what)).at_byte(member.data_offset));
    };
    if (real.is_over_limit)
      complain(
          fmt::format("is looked into for {} bytes and no further: as much has been inflated as "
                      "max_inflated_bytes allows",
                      real.bytes));
    else if (!real.is_whole)
      complain(fmt::format("has a deflated stream that does not end well after {} bytes", real.bytes));
    else if (real.bytes != member.bytes)
      complain(fmt::format("inflates to {} bytes, but {} are declared", real.bytes, member.bytes));
    else if (real.packed_bytes != member.packed_bytes)
      complain(fmt::format("has {} bytes behind its deflated stream", member.packed_bytes - real.packed_bytes));
    member.bytes = real.bytes;
  }
}

}  // namespace ballast::archive
