#include "checkpoint/detect.hpp"

#include <ballast/error.hpp>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "checkpoint/foreign_shapes.hpp"
#include "formats/archive/tar.hpp"
#include "formats/archive/zip_tail.hpp"
#include "formats/gguf/header.hpp"
#include "formats/pickle/machine.hpp"
#include "formats/safetensors/reader.hpp"

namespace ballast {
namespace {

constexpr std::size_t kSmallestContainer = 22;  // an empty zip

using namespace std::string_view_literals;

// What Ballast reads, by how it begins. Pickles of protocols 0 and 1 begin like any text: see is_old_pickle.
struct Known {
  std::string_view bytes;
  Content content;
};
constexpr std::array kKnown = {
    Known{"PK\x03\x04"sv, Content::zip},  Known{"PK\x05\x06"sv, Content::zip},  Known{"\x80\x02"sv, Content::pickle},
    Known{"\x80\x03"sv, Content::pickle}, Known{"\x80\x04"sv, Content::pickle}, Known{"\x80\x05"sv, Content::pickle},
    Known{"\x93NUMPY"sv, Content::npy},
};

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::span<const std::byte> first_bytes_of(const io::ByteSource& source, std::span<std::byte> buffer) {
  const auto first =
      buffer.first(static_cast<std::size_t>(std::min<std::uint64_t>(source.size_bytes(), buffer.size())));
  source.read_at(0, first);
  return first;
}

// An index of shards, at best. Braces begin templates of text as well.
bool looks_like_json(std::string_view text) {
  const std::string_view object = foreign::skip_space(text);
  if (!object.starts_with('{')) return false;
  const std::string_view key = foreign::skip_space(object.substr(1));
  return key.empty() || key[0] == '"' || key[0] == '}';
}

template <class Table>
auto find_beginning(const Table& table, std::string_view text) {
  return std::find_if(table.begin(), table.end(), [&](const auto& row) { return text.starts_with(row.bytes); });
}

// A pickle of protocol 0 or 1 has no magic: it is one where it runs to its end. Few bytes can begin one.
bool is_old_pickle(const io::ByteSource& source, std::string_view text) {
  constexpr std::string_view kFirstOpcodes = "(]})cIJKLMNFGSTUVXdliqp0";
  if (kFirstOpcodes.find(text[0]) == std::string_view::npos) return false;
  try {
    const auto same = io::section({std::shared_ptr<void>(), &source}, 0, source.size_bytes(), source.name());
    pickle::Graph graph(same);
    pickle::run(graph, 0, source.size_bytes(), {});
    return true;
  } catch (const Error&) {
    return false;
  }
}

bool is_all_zero(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c == '\0'; });
}

// By what it begins with. Safetensors first, because a header's length can look like the magic of any other format: for
// those that look at the magic of a zip alone it is a zip then, but no pickle goes on with the zeros of a length.
std::vector<Reading> readings_by_beginning(std::span<const std::byte> first) {
  std::vector<Reading> readings;
  if (safetensors::looks_like_safetensors(first)) readings.push_back({Content::safetensors});
  const auto known = find_beginning(kKnown, as_text(first));
  if (known != kKnown.end() && (readings.empty() || known->content == Content::zip))
    readings.push_back({known->content});
  if (gguf::looks_like_gguf(first)) readings.push_back({Content::gguf});
  if (archive::looks_like_tar(first)) readings.push_back({Content::tar});
  return readings;
}

std::optional<Content> find_content(std::span<const std::byte> first) {
  const auto readings = readings_by_beginning(first);
  return readings.empty() ? std::nullopt : std::optional(readings.front().content);
}

std::string_view name_of(Content content) {
  switch (content) {
    case Content::safetensors: return "a safetensors file";
    case Content::json: return "JSON";
    case Content::zip: return "a zip archive";
    case Content::tar: return "a tar archive";
    case Content::pickle: return "a pickle";
    case Content::npy: return "a NumPy file";
    case Content::gguf: return "a GGUF file";
  }
  return "";
}

// Every byte that is not an ASCII character as \xNN: by chance, some make up letters of far alphabets.
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
      .hint("Ballast reads safetensors, PyTorch, GGUF and NumPy files, and zips of them");
}

}  // namespace

Content detect(const io::ByteSource& source) try {
  const std::uint64_t size = source.size_bytes();
  if (size == 0) throw Error(Errc::malformed, "the file is empty").hint("an interrupted download or copy?");

  std::array<std::byte, kLookBytes> buffer;
  const auto first = first_bytes_of(source, buffer);
  const std::string_view text = as_text(first);

  const auto readings = readings_of(source);
  const bool is_zip_without_beginning = readings.size() == 1 && readings.front().offset != 0;
  if (readings.size() > 1 || is_zip_without_beginning) {
    throw Error(Errc::malformed, "the file " + text_of(readings))
        .at_byte(readings.back().offset)
        .hint("two programs could read two different things in it; get it from where it came from again");
  }
  if (!readings.empty()) return readings.front().content;
  if (looks_like_json(text)) return Content::json;
  if (is_all_zero(text)) {
    throw Error(Errc::malformed, "the file begins with zeros only").hint("an interrupted download or copy?");
  }
  if (is_old_pickle(source, text)) return Content::pickle;
  if (safetensors::looks_like_damaged_safetensors(source, first)) return Content::safetensors;  // its reader says how
  if (const auto foreign = find_foreign_format({text, source}))
    throw Error(Errc::unsupported, "this is " + foreign->what).hint(foreign->hint);
  if (safetensors::is_too_short(source)) return Content::safetensors;
  refuse_stranger(text);
} catch (Error& error) {
  throw error.in(source.name());
}

std::vector<Reading> readings_of(const io::ByteSource& source) {
  std::array<std::byte, kLookBytes> buffer;
  std::vector<Reading> readings = readings_by_beginning(first_bytes_of(source, buffer));
  const bool is_zip = std::ranges::any_of(readings, [](const Reading& r) { return r.content == Content::zip; });
  if (is_zip) return readings;  // whose reader looks at its end
  if (const auto end = archive::find_zip_at_end(source)) readings.push_back({Content::zip, *end});
  return readings;
}

std::string text_of(const std::vector<Reading>& readings) {
  std::string text;
  for (const Reading& reading : readings) {
    if (!text.empty()) text += " and ";
    text += std::string(reading.offset == 0 ? "begins as " : "ends as ") + std::string(name_of(reading.content));
  }
  return readings.size() == 1 ? text + ", but does not begin as one" : text;
}

std::optional<Content> detect_quietly(const io::ByteSource& source) {
  std::array<std::byte, kLookBytes> buffer;
  return find_content(first_bytes_of(source, buffer));
}

bool begins_like_a_container(std::span<const std::byte> first_bytes) {
  if (first_bytes.size() < kSmallestContainer) return false;
  const auto known = find_beginning(kKnown, as_text(first_bytes));
  if (known != kKnown.end()) return known->content == Content::zip || known->content == Content::npy;
  return archive::looks_like_tar(first_bytes);
}

std::optional<std::string> find_closed_content(const io::ByteSource& source, Within within) {
  std::array<std::byte, kLookBytes> buffer;
  return find_closed_format(as_text(first_bytes_of(source, buffer)), within == Within::archive);
}

}  // namespace ballast
