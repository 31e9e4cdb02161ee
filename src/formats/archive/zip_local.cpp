#include "formats/archive/zip_local.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "core/checked.hpp"
#include "core/cursor.hpp"
#include "core/text.hpp"
#include "formats/archive/zip_central.hpp"
#include "formats/archive/zip_format.hpp"

namespace ballast::archive {

namespace {

// torch pads the extra field to align the data by 64, and may have a zip64 field in it: so much is read with a header.
constexpr std::uint64_t kUsualExtraBytes = 4 + 63 + 28;

// One read serves the headers of several members where so few bytes of data lie between them, up to so many in all.
constexpr std::uint64_t kWorthSkipping = 512;
constexpr std::uint64_t kBatchBytes = 64 << 10;

bool has_descriptor(const ZipMember& member) { return (member.flags & kHasDescriptor) != 0; }

void check_names_agree(const ZipMember& central, const ZipMember& local, ZipReport& report) {
  if (local.name == central.name) return;
  report.add(Error(Errc::malformed, fmt::format("the directory calls a member {}, but its local header {}",
                                                quote(central.name), quote(local.name)))
                 .at_byte(local.header_offset + kLocalHeaderBytes));
}

void check_numbers_agree(const ZipMember& central, const ZipMember& local, ZipReport& report) {
  struct Field {
    const char* name;
    std::uint64_t central, local;
    bool may_be_zero;
    std::uint64_t offset;
  };
  const bool is_later = has_descriptor(local);
  const Field fields[] = {
      {"flag word", central.flags, local.flags, false, 6},
      {"method", central.method, local.method, false, 8},
      {"CRC-32", central.crc32, local.crc32, is_later, 14},
      {"packed size", central.packed_bytes, local.packed_bytes, is_later, 18},
      {"unpacked size", central.bytes, local.bytes, is_later, 22},
  };
  for (const Field& field : fields) {
    if (field.local == field.central || (field.may_be_zero && field.local == 0)) continue;
    report.add(
        Error(Errc::malformed, fmt::format("the {} of member {} is {} in the directory but {} in its local header",
                                           field.name, quote(central.name), field.central, field.local))
            .at_byte(local.header_offset + field.offset));
  }
}

// Beyond 4 GiB torch writes the unpacked size, zero for the packed one, and the offset of the header, into a zip64
// field that nothing refers to.
void check_spare_agrees(const ZipMember& central, const ZipLocalHeader& local, ZipReport& report) {
  for (std::size_t i = 0; i < local.spare.count; ++i) {
    const std::uint64_t value = local.spare.values[i];
    if (value == central.bytes || value == central.packed_bytes || value == central.header_offset) continue;
    if (value == 0 && has_descriptor(central)) continue;
    report.add(Error(Errc::malformed, fmt::format("the zip64 field in the local header of member {} holds {}, which is "
                                                  "neither its size nor its place",
                                                  quote(central.name), value))
                   .at_byte(central.header_offset));
  }
}

// Behind the data, with or without its signature PK 7 8 (4): CRC-32 (4), packed and unpacked size (4 + 4, or 8 + 8).
// How long it is follows from where the next member begins, so there is nothing to guess.
void check_descriptor(const ZipMember& member, std::span<const std::byte> bytes, std::uint64_t offset,
                      ZipReport& report) {
  Cursor in(bytes, offset);
  const bool has_signature = bytes.size() % 8 == 0;
  const bool is_wide = bytes.size() >= 20;
  const auto size = [&] { return is_wide ? in.u64("descriptor") : in.u32("descriptor"); };

  const bool is_descriptor = !has_signature || in.string(4, "descriptor") == kDescriptor;
  const std::uint32_t crc32 = in.u32("descriptor");
  const std::uint64_t packed_bytes = size();
  const std::uint64_t unpacked_bytes = size();
  if (is_descriptor && crc32 == member.crc32 && packed_bytes == member.packed_bytes && unpacked_bytes == member.bytes)
    return;
  report.add(
      Error(Errc::malformed,
            fmt::format("the descriptor behind member {} says something else than the directory", quote(member.name)))
          .at_byte(offset));
}

class LocalHeaders {
 public:
  LocalHeaders(const io::ByteSource& source, const ZipDirectory& directory, HeaderWindow& window,
               std::vector<ZipMember>& members, ZipReport& report)
      : source_(source), directory_(directory), window_(window), members_(members), report_(report) {}

  void read_all() {
    order_by_place();
    std::uint64_t begin = 0;  // of what is not yet explained: first the file's, then the end of a member's data
    const ZipMember* previous = nullptr;
    for (std::size_t i = 0; i < order_.size(); ++i) {
      ZipMember& member = members_[order_[i]];
      load_batch(i, std::min(begin, member.header_offset));
      close(previous, begin, member.header_offset);
      if (!read_one(member)) continue;
      previous = &member;
      begin = checked_add(member.data_offset, member.packed_bytes).value_or(UINT64_MAX);
    }
    close(previous, begin, directory_.offset);
    if (!report_.is_strict()) keep_what_was_found();
  }

 private:
  // Writers put the members in the order of the directory, but nothing says that they must.
  void order_by_place() {
    order_.resize(members_.size());
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    const auto is_before = [&](std::size_t a, std::size_t b) {
      return members_[a].header_offset < members_[b].header_offset;
    };
    if (!std::is_sorted(order_.begin(), order_.end(), is_before))
      std::stable_sort(order_.begin(), order_.end(), is_before);
  }

  // Reads the descriptor of one member and the header of the next at once, and more of them where little lies between.
  void load_batch(std::size_t i, std::uint64_t begin) {
    const auto usual_end = [&](std::size_t k) {
      const ZipMember& member = members_[order_[k]];
      return std::min(member.header_offset + kLocalHeaderBytes + member.name.size() + kUsualExtraBytes,
                      source_.size_bytes());
    };
    // What lies before may be a gap of any size; then only the header is wanted.
    const std::uint64_t header = members_[order_[i]].header_offset;
    if (header - begin > kWorthSkipping) begin = header;
    if (window_.holds(begin, header + kLocalHeaderBytes - begin)) return;

    std::uint64_t end = usual_end(i);
    for (std::size_t k = i + 1; k < order_.size(); ++k) {
      const std::uint64_t next = members_[order_[k]].header_offset;
      if (next > end && next - end > kWorthSkipping) break;
      if (next - begin > kBatchBytes) break;
      end = std::max(end, usual_end(k));
    }
    window_.at(begin, end - begin);
  }

  // What lies between the data of one member and whatever comes next is its descriptor, or nothing.
  void close(const ZipMember* member, std::uint64_t data_end, std::uint64_t next) {
    if (report_.is_full()) return;
    if (member == nullptr) {
      if (next != 0) complain(0, fmt::format("{} bytes lie before the first member", next));
      return;
    }
    if (data_end > next)
      return complain(member->header_offset,
                      fmt::format("the data of member {} end at byte {}, but the next thing begins at byte {}",
                                  quote(member->name), data_end, next));

    const std::uint64_t gap = next - data_end;
    if (!has_descriptor(*member)) {
      if (gap != 0)
        complain(data_end, fmt::format("{} bytes lie behind the data of member {}, where nothing belongs", gap,
                                       quote(member->name)));
    } else if (gap == 12 || gap == 16 || gap == 20 || gap == 24) {
      check_descriptor(*member, window_.at(data_end, gap), data_end, report_);
    } else {
      complain(data_end, fmt::format("{} bytes lie behind the data of member {}, where a descriptor belongs", gap,
                                     quote(member->name)));
    }
  }

  void complain(std::uint64_t offset, std::string what) {
    report_.add(Error(Errc::malformed, std::move(what)).at_byte(offset));
  }

  bool read_one(ZipMember& member) {
    try {
      ZipLocalHeader local = read_local_header(member.header_offset, window_, report_);
      member.data_offset = local.member.data_offset;
      check_version(local.member.name, local.version, member.header_offset, report_);
      check_names_agree(member, local.member, report_);
      check_numbers_agree(member, local.member, report_);
      check_spare_agrees(member, local, report_);
      if (!report_.is_strict()) consider_local_view(member, std::move(local.member));
      return true;
    } catch (const Error& error) {
      report_.add(error);
      return false;
    }
  }

  // Some reader may believe the local header: then there is another member, one for each header.
  void consider_local_view(const ZipMember& central, ZipMember local) {
    if (!others_.empty() && others_.back().header_offset == local.header_offset) return;
    if (has_descriptor(local) && local.packed_bytes == 0) {
      local.packed_bytes = central.packed_bytes;
      local.bytes = central.bytes;
    }
    const bool is_the_same = local.name == central.name && local.method == central.method &&
                             local.packed_bytes == central.packed_bytes && local.bytes == central.bytes;
    if (!is_the_same) others_.push_back(std::move(local));
  }

  void keep_what_was_found() {
    std::erase_if(members_, [](const ZipMember& member) { return member.data_offset == 0; });
    for (ZipMember& other : others_) members_.push_back(std::move(other));
    const std::uint64_t size = source_.size_bytes();
    for (ZipMember& member : members_) {
      if (!is_inside(member.data_offset, member.packed_bytes, size)) member.packed_bytes = size - member.data_offset;
      if (member.is_stored()) member.bytes = member.packed_bytes;
    }
  }

  const io::ByteSource& source_;
  const ZipDirectory& directory_;
  HeaderWindow& window_;
  std::vector<ZipMember>& members_;
  ZipReport& report_;
  std::vector<std::size_t> order_;
  std::vector<ZipMember> others_;
};

}  // namespace

// 1. signature PK 3 4                             4
// 2. version needed, flags, method                2 + 2 + 2
// 3. time, date                                   2 + 2
// 4. CRC-32, packed size, unpacked size           4 + 4 + 4
// 5. lengths of name and extra field              2 + 2
// 6. name, extra field
ZipLocalHeader read_local_header(std::uint64_t offset, HeaderWindow& window, ZipReport& report) {
  Cursor fixed(window.at(offset, kLocalHeaderBytes), offset);
  if (fixed.string(4, "local header") != kLocalHeader)
    throw Error(Errc::malformed, "there is no local header where the directory says").at_byte(offset);
  ZipLocalHeader header;
  ZipMember& member = header.member;
  header.version = fixed.u16("version needed");
  member.flags = fixed.u16("flags");
  member.method = fixed.u16("method");
  fixed.skip(4, "time and date");
  member.crc32 = fixed.u32("CRC-32");
  ZipNumbers numbers;
  numbers.packed_bytes = fixed.u32("packed size");
  numbers.bytes = fixed.u32("unpacked size");
  const std::uint64_t name_bytes = fixed.u16("length of the name");
  const std::uint64_t extra_bytes = fixed.u16("length of the extra field");

  Cursor in(window.at(offset, kLocalHeaderBytes + name_bytes + extra_bytes), offset);
  in.skip(kLocalHeaderBytes, "local header");
  member.name = in.string(name_bytes, "name");
  const std::uint64_t extra_offset = in.position();
  try {
    const ZipExtra extra = read_extra(in.bytes(extra_bytes, "extra field"), extra_offset);
    header.spare = resolve_zip64(extra, false, numbers);
    require_one_name(extra, member.name);
  } catch (Error& error) {
    report.add(error.at_byte(offset));
  }
  member.packed_bytes = numbers.packed_bytes;
  member.bytes = numbers.bytes;
  member.header_offset = offset;
  member.data_offset = in.position();
  return header;
}

void read_local_headers(const io::ByteSource& source, const ZipDirectory& directory, HeaderWindow& window,
                        std::vector<ZipMember>& members, ZipReport& report) {
  LocalHeaders(source, directory, window, members, report).read_all();
}

}  // namespace ballast::archive
