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

constexpr std::uint64_t kZipEndBytes = 22;

bool is_all_zero(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c == '\0'; });
}

// By what it begins with. Safetensors first, because a header's length can look like the magic of any other format.
std::optional<Content> find_content(std::span<const std::byte> first) {
  if (safetensors::looks_like_safetensors(first)) return Content::safetensors;
  if (const auto known = find_beginning(kKnown, as_text(first)); known != kKnown.end()) return known->content;
  if (gguf::looks_like_gguf(first)) return Content::gguf;
  if (archive::looks_like_tar(first)) return Content::tar;
  return std::nullopt;
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

  const auto found = find_content(first);
  // Two programs could read two things in it: the one looks at the beginning, the other for a zip at the end.
  if (found != Content::zip && ends_as_zip(source)) {
    throw Error(Errc::malformed, "the file ends as a zip archive, but does not begin as one")
        .at_byte(size - kZipEndBytes)
        .hint("two programs could read two different things in it; get it from where it came from again");
  }
  if (found) return *found;
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

bool ends_as_zip(const io::ByteSource& source) {
  if (source.size_bytes() < kZipEndBytes) return false;
  std::array<std::byte, kZipEndBytes> bytes;
  source.read_at(source.size_bytes() - kZipEndBytes, bytes);
  return as_text(bytes).starts_with("PK\x05\x06"sv) && as_text(bytes).ends_with("\0\0"sv);
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
