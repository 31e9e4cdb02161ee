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

// torch pads the extra field to align the data by 64, and may have a zip64 field in it: this many bytes are read with a
// header.
constexpr std::uint64_t kUsualExtraBytes = 4 + 63 + 28;

// If there are at most kWorthSkipping bytes of data between two headers, they are read with the headers. About
// kBatchBytes are held at once.
constexpr std::uint64_t kWorthSkipping = 512;
constexpr std::uint64_t kBatchBytes = 8 << 20;

constexpr std::uint64_t kMostDescriptorBytes = 24;

std::uint64_t usual_header_bytes(const ZipMember& member) {
  return kLocalHeaderBytes + member.name.size() + kUsualExtraBytes;
}

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

// Checks the descriptor behind the data, with or without its signature PK 7 8 (4): CRC-32 (4), packed and unpacked size
// (4 + 4, or 8 + 8). Its length follows from where the next member begins, so there is nothing to guess.
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

void complain(ZipReport& report, std::uint64_t offset, std::string what) {
  report.add(Error(Errc::malformed, std::move(what)).at_byte(offset));
}

// Between the data of a member and whatever comes next lies the member's descriptor, or nothing.
void check_gap(const ZipMember& member, std::uint64_t data_end, std::uint64_t next, HeaderWindow& window,
               ZipReport& report) {
  if (report.is_full()) return;
  if (data_end > next)
    return complain(report, member.header_offset,
                    fmt::format("the data of member {} end at byte {}, but the next thing begins at byte {}",
                                quote(member.name), data_end, next));

  const std::uint64_t gap = next - data_end;
  if (!has_descriptor(member)) {
    if (gap != 0)
      complain(
          report, data_end,
          fmt::format("{} bytes lie behind the data of member {}, where nothing belongs", gap, quote(member.name)));
  } else if (gap == 12 || gap == 16 || gap == 20 || gap == kMostDescriptorBytes) {
    check_descriptor(member, window.at(data_end, gap), data_end, report);
  } else {
    complain(
        report, data_end,
        fmt::format("{} bytes lie behind the data of member {}, where a descriptor belongs", gap, quote(member.name)));
  }
}

std::uint64_t data_end_of(const ZipMember& member) {
  return checked_add(member.data_offset, member.packed_bytes).value_or(UINT64_MAX);
}

// Fills in where the data begin.
ZipLocalHeader check_header(ZipMember& member, HeaderWindow& window, ZipReport& report) {
  ZipLocalHeader local = read_local_header(member.header_offset, window, report);
  member.data_offset = local.member.data_offset;
  check_version(local.member.name, local.version, member.header_offset, report);
  check_names_agree(member, local.member, report);
  check_numbers_agree(member, local.member, report);
  check_spare_agrees(member, local, report);
  return local;
}

// Writers put the members in the order of the directory, but nothing says that they must.
std::vector<std::size_t> in_order_of_the_file(const std::vector<ZipMember>& members) {
  std::vector<std::size_t> order(members.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto is_before = [&](std::size_t a, std::size_t b) {
    return members[a].header_offset < members[b].header_offset;
  };
  if (!std::is_sorted(order.begin(), order.end(), is_before)) std::stable_sort(order.begin(), order.end(), is_before);
  return order;
}

class LocalHeaders {
 public:
  LocalHeaders(const Source& source, const ZipDirectory& directory, HeaderWindow& window,
               std::vector<ZipMember>& members, ZipReport& report)
      : source_(source),
        directory_(directory),
        window_(window),
        members_(members),
        report_(report),
        order_(in_order_of_the_file(members)) {}

  void read_all() {
    const ZipMember* previous = nullptr;
    for (std::size_t i = 0; i < order_.size(); ++i) {
      if (i == loaded_) load_from(i);
      ZipMember& member = members_[order_[i]];
      close(previous, member.header_offset);
      if (read_one(member)) previous = &member;
    }
    close(previous, directory_.offset);
    if (!report_.is_strict()) keep_what_was_found();
  }

 private:
  // The range of a member's header and of the descriptor before it; at the end, the range of the last descriptor.
  ByteRange range_of(std::size_t i) const {
    const bool is_header = i < order_.size();
    const std::uint64_t at = is_header ? members_[order_[i]].header_offset : directory_.offset;
    const std::uint64_t begin = at - std::min(at, kMostDescriptorBytes);
    const std::uint64_t size = is_header ? usual_header_bytes(members_[order_[i]]) : 0;
    return {begin, std::min(at + size, source_.size_bytes()) - begin};
  }

  // Asks for the headers from number `i` on, as many as may be held at once: all of them as a rule.
  void load_from(std::size_t i) {
    std::vector<ByteRange> ranges;
    std::uint64_t total = 0;
    for (; i <= order_.size() && total < kBatchBytes; ++i) {
      const ByteRange next = range_of(i);
      const std::uint64_t end = ranges.empty() ? 0 : ranges.back().offset + ranges.back().size;
      if (ranges.empty() || next.offset > end + kWorthSkipping) {
        ranges.push_back(next);
        total += next.size;
      } else if (next.offset + next.size > end) {
        ranges.back().size = next.offset + next.size - ranges.back().offset;
        total += next.offset + next.size - end;
      }
    }
    window_.load(ranges);
    loaded_ = i;
  }

  void close(const ZipMember* member, std::uint64_t next) {
    if (member != nullptr) return check_gap(*member, data_end_of(*member), next, window_, report_);
    if (next != 0 && !report_.is_full())
      complain(report_, 0, fmt::format("{} bytes lie before the first member", next));
  }

  bool read_one(ZipMember& member) {
    try {
      ZipLocalHeader local = check_header(member, window_, report_);
      if (!report_.is_strict()) consider_local_view(member, std::move(local.member));
      return true;
    } catch (const Error& error) {
      report_.add(error);
      return false;
    }
  }

  // Some reader may believe the local header. If that differs from the directory, it makes another member, one for each
  // header.
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

  const Source& source_;
  const ZipDirectory& directory_;
  HeaderWindow& window_;
  std::vector<ZipMember>& members_;
  ZipReport& report_;
  std::vector<std::size_t> order_;
  std::size_t loaded_ = 0;  // the number of the first header that was not asked for yet
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

void read_local_headers(const Source& source, const ZipDirectory& directory, HeaderWindow& window,
                        std::vector<ZipMember>& members, ZipReport& report) {
  LocalHeaders(source, directory, window, members, report).read_all();
}

void put_off_local_headers(const ZipDirectory& directory, std::vector<ZipMember>& members, ZipReport& report) {
  std::uint64_t next = directory.offset;
  std::vector<std::size_t> order = in_order_of_the_file(members);
  std::ranges::reverse(order);  // clang 14 does not take a view of it
  for (const std::size_t i : order) {
    ZipMember& member = members[i];
    member.next_offset = next;
    next = member.header_offset;
    const auto least = checked_add(kLocalHeaderBytes + member.name.size(), member.packed_bytes);
    if (!least || *least > member.next_offset - member.header_offset)
      complain(report, member.header_offset,
               fmt::format("member {} has {} bytes of data, but the next thing begins at byte {}", quote(member.name),
                           member.packed_bytes, member.next_offset));
  }
  if (next != 0 && !members.empty()) complain(report, 0, fmt::format("{} bytes lie before the first member", next));
}

std::vector<ByteRange> ranges_of_local_header(const ZipMember& member) {
  const std::uint64_t end = std::min(member.header_offset + usual_header_bytes(member), member.next_offset);
  const std::uint64_t descriptor = std::max(member.next_offset - kMostDescriptorBytes, end);
  std::vector<ByteRange> ranges = {{member.header_offset, end - member.header_offset}};
  if (has_descriptor(member)) ranges.push_back({descriptor, member.next_offset - descriptor});
  return ranges;
}

void check_local_header(ZipMember& member, HeaderWindow& window, ZipReport& report) {
  check_header(member, window, report);
  check_gap(member, data_end_of(member), member.next_offset, window, report);
}

}  // namespace ballast::archive
