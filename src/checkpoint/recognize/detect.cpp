#include "checkpoint/recognize/detect.hpp"

#include <ballast/error.hpp>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "checkpoint/recognize/foreign_shapes.hpp"
#include "formats/all.hpp"
#include "formats/archive/zip_tail.hpp"
#include "formats/safetensors/format.hpp"
#include "formats/safetensors/reader.hpp"
#include "io/section.hpp"

namespace ballast {
namespace {

constexpr std::size_t kSmallestContainer = 22;  // an empty zip

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::span<const std::byte> first_bytes_of(const Source& source, std::span<std::byte> buffer) {
  const auto first =
      buffer.first(static_cast<std::size_t>(std::min<std::uint64_t>(source.size_bytes(), buffer.size())));
  source.read(0, first);
  return first;
}

// Such a file is an index of shards, or not a checkpoint. Text templates begin with braces as well.
bool looks_like_json(std::string_view text) {
  const std::string_view object = foreign::skip_space(text);
  if (!object.starts_with('{')) return false;
  const std::string_view key = foreign::skip_space(object.substr(1));
  return key.empty() || key[0] == '"' || key[0] == '}';
}

bool is_all_zero(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c == '\0'; });
}

// Recognizes a file by its beginning. Safetensors comes first in the table, because the length of a header can look
// like the magic of any other format. A program that looks only at the magic of a zip then takes the file for a zip,
// but no pickle goes on with the zeros of a length.
std::vector<Reading> readings_by_beginning(std::span<const std::byte> first) {
  std::vector<Reading> readings;
  for (const FileFormat* format : all_formats()) {
    if (format->begins == nullptr || (format->is_short_magic && !readings.empty())) continue;
    if (format->begins(first)) readings.push_back({format});
  }
  return readings;
}

// Writes every byte that is not an ASCII character as \xNN, because some make up letters of foreign alphabets by
// chance.
std::string escaped(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    const bool is_plain = c >= ' ' && c < 0x7f && c != '"' && c != '\\';
    text += is_plain ? std::string(1, c) : fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  return text;
}

[[noreturn]] void refuse_stranger(std::string_view first) {
  constexpr std::size_t kShown = 16;
  throw Error(Errc::unsupported,
              "this is not a format that Ballast knows: it begins with \"" + escaped(first.substr(0, kShown)) + '"')
      .hint("Ballast reads " + names_of_formats([](const FileFormat&) { return true; }, "and") +
            " files, and zips of them");
}

}  // namespace

SourcePtr with_beginning(const SourcePtr& source) {
  constexpr std::uint64_t kKeptBytes =
      4096;  // all of a small header, and more than anybody needs to tell formats apart
  static_assert(kKeptBytes >= kLookBytes);
  return io::with_beginning(source, kKeptBytes);
}

Recognized recognize(const SourcePtr& whole, const Limits& limits, bool checks_end) try {
  if (whole->size_bytes() == 0)
    throw Error(Errc::malformed, "the file is empty").hint("an interrupted download or copy?");
  const SourcePtr kept = with_beginning(whole);
  const Source& source = *kept;
  const auto is = [&](const FileFormat& format) { return Recognized{{kept}, &format}; };

  std::array<std::byte, kLookBytes> buffer;
  const auto first = first_bytes_of(source, buffer);
  const std::string_view text = as_text(first);

  const bool is_near = source.bytes_per_round_trip() == 0;
  const auto readings = readings_of(source, checks_end || is_near);
  const bool is_zip_without_beginning = readings.size() == 1 && readings.front().offset != 0;
  if (readings.size() > 1 || is_zip_without_beginning) {
    throw Error(Errc::malformed, "the file " + text_of(readings))
        .at_byte(readings.back().offset)
        .hint("two programs could read two different things in it; get it from where it came from again");
  }
  if (!readings.empty()) return is(*readings.front().format);
  if (looks_like_json(text)) return {{kept}, nullptr};
  if (is_all_zero(text)) {
    throw Error(Errc::malformed, "the file begins with zeros only").hint("an interrupted download or copy?");
  }
  for (const FileFormat* format : all_formats()) {
    if (format->claim == nullptr) continue;
    if (auto begun = format->claim(kept, first, limits)) return {{kept, std::move(begun)}, format};
  }
  for (const FileFormat* format : all_formats()) {
    if (format->was != nullptr && format->was(source, first)) return is(*format);
  }
  if (const auto foreign = find_foreign_format({text, source}))
    throw Error(Errc::unsupported, "this is " + foreign->what).hint(foreign->hint);
  if (safetensors::is_too_short(source)) return is(safetensors::kFormat);  // its reader says so
  refuse_stranger(text);
} catch (Error& error) {
  throw error.in(whole->name());
}

std::vector<Reading> readings_of(const Source& source, bool checks_end) {
  std::array<std::byte, kLookBytes> buffer;
  std::vector<Reading> readings = readings_by_beginning(first_bytes_of(source, buffer));
  const bool is_zip = std::ranges::any_of(readings, [](const Reading& r) { return r.format == &kZipArchive; });
  if (is_zip || !checks_end) return readings;  // the reader of a zip looks at its end
  if (const auto end = archive::find_zip_at_end(source)) readings.push_back({&kZipArchive, *end});
  return readings;
}

std::string text_of(const std::vector<Reading>& readings) {
  std::string text;
  for (const Reading& reading : readings) {
    if (!text.empty()) text += " and ";
    text += std::string(reading.offset == 0 ? "begins as " : "ends as ") + std::string(reading.format->bytes);
  }
  return readings.size() == 1 ? text + ", but does not begin as one" : text;
}

bool begins_like_a_checkpoint(const Source& source) {
  std::array<std::byte, kLookBytes> buffer;
  return !readings_by_beginning(first_bytes_of(source, buffer)).empty();
}

bool begins_like_a_container(std::span<const std::byte> first_bytes) {
  return first_bytes.size() >= kSmallestContainer && std::ranges::any_of(all_formats(), [&](const FileFormat* format) {
           return format->holds_files && format->begins(first_bytes);
         });
}

std::optional<std::string> find_closed_content(const Source& source, Within within) {
  std::array<std::byte, kLookBytes> buffer;
  return find_closed_format(as_text(first_bytes_of(source, buffer)), within == Within::archive);
}

}  // namespace ballast
