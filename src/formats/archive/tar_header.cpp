#include "formats/archive/tar_header.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <ballast/error.hpp>

#include "core/checked.hpp"
#include "core/cursor.hpp"
#include "core/text.hpp"

namespace ballast::archive {
namespace {

constexpr std::string_view kPosixMagic{"ustar\0", 6};
constexpr std::size_t kChecksumBegin = 148, kChecksumEnd = 156;

[[noreturn]] void refuse_number(std::string_view field, const char* what, std::uint64_t offset) {
  throw Error(Errc::malformed,
              fmt::format("the {} of a tar header is {}, which is no octal number", what, quote(field)))
      .at_byte(offset);
}

// Spaces, octal digits, and then nothing but spaces and zeros.
std::optional<std::uint64_t> parse_octal(std::string_view field) noexcept {
  const auto first = field.find_first_not_of(' ');
  if (first == field.npos) return std::nullopt;
  const auto last = std::min(field.find_first_not_of("01234567", first), field.size());
  if (last == first || field.find_first_not_of(std::string_view("\0 ", 2), last) != field.npos) return std::nullopt;
  std::uint64_t value = 0;
  for (const char digit : field.substr(first, last - first))
    value = value * 8 + static_cast<std::uint64_t>(digit - '0');
  return value;  // twelve digits at most
}

// GNU tar writes a size that does not fit as a big-endian number, after a byte 0x80. Negative numbers begin with 0xFF.
std::uint64_t read_size(std::string_view field, std::uint64_t offset) {
  if (field.front() != '\x80') {
    const auto size = parse_octal(field);
    if (!size) refuse_number(field, "size", offset);
    return *size;
  }
  const std::string_view high = field.substr(1, 3), low = field.substr(4);
  if (high != std::string_view("\0\0\0", 3)) refuse_number(field, "size", offset);
  return Cursor(std::as_bytes(std::span(low)), offset + 4, std::endian::big).u64("size");
}

std::string_view up_to_nul(std::string_view field) { return field.substr(0, field.find('\0')); }

// In a POSIX header the prefix is the beginning of a long name. Other headers have something else there, but Python
// takes it for a prefix, too.
std::string read_name(std::string_view name, std::string_view prefix, bool is_posix, std::uint64_t offset) {
  const bool has_prefix = prefix.find_first_not_of('\0') != prefix.npos;
  if (!has_prefix) return std::string(up_to_nul(name));
  if (!is_posix) throw Error(Errc::malformed, "a tar header has a prefix that its kind has not").at_byte(offset + 345);
  return fmt::format("{}/{}", up_to_nul(prefix), up_to_nul(name));
}

std::uint64_t read_decimal(std::string_view text, const char* what, std::uint64_t offset) {
  std::optional<std::uint64_t> value = text.empty() ? std::nullopt : std::optional<std::uint64_t>(0);
  for (const char c : text) {
    if (c < '0' || c > '9') value.reset();
    if (value) value = checked_mul(*value, 10);
    if (value) value = checked_add(*value, static_cast<std::uint64_t>(c - '0'));
  }
  if (!value)
    throw Error(Errc::malformed, fmt::format("the {} of a pax record is {}", what, quote(text))).at_byte(offset);
  return *value;
}

void apply(PaxRecords& records, std::string_view key, std::string_view value, std::uint64_t offset) {
  const auto require_once = [&](bool is_there) {
    if (is_there) throw Error(Errc::malformed, fmt::format("two pax records {}", quote(key))).at_byte(offset);
  };
  if (key == "path") {
    require_once(records.path.has_value());
    records.path = value;
  } else if (key == "size") {
    require_once(records.size.has_value());
    records.size = read_decimal(value, "size", offset);
  } else if (key.starts_with("GNU.sparse.") || key == "linkpath") {
    throw Error(Errc::unsupported, fmt::format("a pax record {}: links and sparse files are not read", quote(key)))
        .at_byte(offset);
  }
  // Other keys are about times, owners and comments.
}

}  // namespace

bool has_tar_checksum(std::span<const std::byte> block) noexcept {
  if (block.size() < kTarBlockBytes) return false;
  const std::string_view text(reinterpret_cast<const char*>(block.data()), kTarBlockBytes);
  const auto declared = parse_octal(text.substr(kChecksumBegin, kChecksumEnd - kChecksumBegin));
  if (!declared) return false;

  std::int64_t as_unsigned = 0, as_signed = 0;
  for (std::size_t i = 0; i < kTarBlockBytes; ++i) {
    const bool is_checksum = i >= kChecksumBegin && i < kChecksumEnd;
    const auto byte = is_checksum ? std::uint8_t{' '} : std::to_integer<std::uint8_t>(block[i]);
    as_unsigned += byte;
    as_signed += static_cast<std::int8_t>(byte);
  }
  const auto sum = static_cast<std::int64_t>(*declared);
  return sum == as_unsigned || sum == as_signed;
}

//   0 name            100          257 magic, version    6 + 2   "ustar\0" "00", GNU "ustar  \0", or nothing
// 100 mode, owners      24         265 owners' names   32 + 32
// 124 size              12         329 device          8 + 8
// 136 time              12         345 prefix            155
// 148 checksum           8         500 nothing            12
// 156 type               1
// 157 target of a link 100
TarHeader read_tar_header(std::span<const std::byte> block, std::uint64_t offset) {
  if (!has_tar_checksum(block))
    throw Error(Errc::malformed, "the checksum of a tar header is wrong")
        .at_byte(offset + kChecksumBegin)
        .hint("the file is damaged, or was not copied completely");
  const std::string_view text(reinterpret_cast<const char*>(block.data()), kTarBlockBytes);
  TarHeader header;
  header.name = read_name(text.substr(0, 100), text.substr(345, 155), text.substr(257, 6) == kPosixMagic, offset);
  header.type = text[156] == '\0' ? '0' : text[156];  // tars from before the types wrote a zero for a file
  header.bytes = read_size(text.substr(124, 12), offset + 124);
  return header;
}

// "LENGTH KEY=VALUE\n": the length counts the whole record, its own digits included.
PaxRecords read_pax_records(std::string_view text, std::uint64_t offset) {
  PaxRecords records;
  while (!text.empty()) {
    const std::string_view digits = text.substr(0, text.find(' '));
    const std::uint64_t size = read_decimal(digits.substr(0, 20), "length", offset);
    if (size <= digits.size() + 1 || size > text.size() || text[static_cast<std::size_t>(size) - 1] != '\n')
      throw Error(Errc::malformed, fmt::format("a pax record says that it has {} bytes", size)).at_byte(offset);

    const std::string_view record = text.substr(digits.size() + 1, static_cast<std::size_t>(size) - digits.size() - 2);
    const auto equals = record.find('=');
    if (equals == record.npos || equals == 0)
      throw Error(Errc::malformed, fmt::format("a pax record without a key: {}", quote(record))).at_byte(offset);
    apply(records, record.substr(0, equals), record.substr(equals + 1), offset);
    text.remove_prefix(static_cast<std::size_t>(size));
    offset += size;
  }
  return records;
}

}  // namespace ballast::archive
