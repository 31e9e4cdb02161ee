#include "formats/archive/zip_extra.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "core/cursor.hpp"
#include "core/text.hpp"
#include "formats/archive/zip_format.hpp"

namespace ballast::archive {

namespace {

constexpr std::uint16_t kZip64Tag = 0x0001;
constexpr std::uint16_t kUnicodeNameTag = 0x7075;
constexpr std::uint64_t kRecordHeadBytes = 4;

// Programs that align data fill up with zeros, fewer than the four bytes that begin a record.
bool is_padding(std::span<const std::byte> rest) {
  return rest.size() < kRecordHeadBytes &&
         std::all_of(rest.begin(), rest.end(), [](std::byte b) { return b == std::byte{0}; });
}

}  // namespace

// A record is a tag (2), the length of its content (2), and the content.
ZipExtra read_extra(std::span<const std::byte> bytes, std::uint64_t offset) {
  ZipExtra extra;
  Cursor in(bytes, offset);
  while (!is_padding(bytes.last(static_cast<std::size_t>(in.remaining())))) {
    const std::uint64_t at = in.position();
    const std::uint16_t tag = in.u16("extra field");
    const std::uint16_t size = in.u16("extra field");
    const std::uint64_t content_offset = in.position();
    const auto content = in.bytes(size, "extra field");
    if (tag != kZip64Tag && tag != kUnicodeNameTag) continue;

    auto& place = tag == kZip64Tag ? extra.zip64 : extra.unicode_name;
    if (place)
      throw Error(Errc::malformed, fmt::format("the extra field has two records of the kind {:#06x}", tag)).at_byte(at);
    place = content;
    (tag == kZip64Tag ? extra.zip64_offset : extra.unicode_name_offset) = content_offset;
  }
  return extra;
}

SpareNumbers resolve_zip64(const ZipExtra& extra, bool is_central, ZipNumbers& numbers) {
  Cursor in(extra.zip64.value_or(std::span<const std::byte>{}), extra.zip64_offset);
  bool has_need = false;
  const auto take = [&](std::uint64_t& number, const char* what) {
    if (number != kIn64) return;
    if (!extra.zip64) throw Error(Errc::malformed, fmt::format("the {} is in a zip64 field that is not there", what));
    number = in.u64(what);
    has_need = true;
  };
  take(numbers.bytes, "unpacked size");
  take(numbers.packed_bytes, "packed size");
  if (is_central) {
    take(numbers.header_offset, "offset of the local header");
    if (numbers.disk == kIn64Short && extra.zip64) numbers.disk = in.u32("disk number");
    if (has_need && !in.at_end())
      throw Error(Errc::malformed, "the zip64 field has more numbers than the header refers to").at_byte(in.position());
  }

  SpareNumbers spare;
  while (in.remaining() >= 8 && spare.count < spare.values.size()) spare.values[spare.count++] = in.u64("zip64 field");
  const bool has_disk_too = is_central && in.remaining() == 4;
  if (has_disk_too && in.u32("disk number") != numbers.disk)
    throw Error(Errc::malformed, "the zip64 field has another disk number than the header").at_byte(in.position() - 4);
  if (!in.at_end()) throw Error(Errc::malformed, "the zip64 field is longer than any known one").at_byte(in.position());
  return spare;
}

// 1. version      1        one
// 2. CRC-32       4        of the name that it replaces
// 3. name                  UTF-8
void require_one_name(const ZipExtra& extra, std::string_view name) {
  if (!extra.unicode_name) return;
  Cursor in(*extra.unicode_name, extra.unicode_name_offset);
  in.skip(5, "second name");
  const std::string_view second = in.string(in.remaining(), "second name");
  if (second != name)
    throw Error(Errc::malformed, fmt::format("member {} has a second name, {}", quote(name), quote(second)))
        .at_byte(extra.unicode_name_offset);
}

}  // namespace ballast::archive
