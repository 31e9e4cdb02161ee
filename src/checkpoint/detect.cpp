#include "checkpoint/detect.hpp"

#include <ballast/error.hpp>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string_view>

#include "formats/archive/tar.hpp"
#include "formats/gguf/header.hpp"
#include "formats/pickle/machine.hpp"
#include "formats/safetensors/reader.hpp"

namespace ballast {
namespace {

constexpr std::size_t kLookBytes = 512;         // a tar says what it is at byte 257
constexpr std::size_t kSmallestContainer = 22;  // an empty zip

using namespace std::string_view_literals;

// What Ballast reads, by how it begins. Pickles of protocols 0 and 1 begin like any text: see may_be_old_pickle.
struct Known {
  std::string_view bytes;
  Content content;
};
constexpr std::array kKnown = {
    Known{"PK\x03\x04"sv, Content::zip},  Known{"PK\x05\x06"sv, Content::zip},  Known{"\x80\x02"sv, Content::pickle},
    Known{"\x80\x03"sv, Content::pickle}, Known{"\x80\x04"sv, Content::pickle}, Known{"\x80\x05"sv, Content::pickle},
    Known{"\x93NUMPY"sv, Content::npy},
};

// What it does not read, with a sentence for each.
struct Magic {
  std::string_view bytes;
  Errc code;
  std::string_view what;
  std::string_view hint;
};
constexpr std::string_view kUnpack = "unpack it first";

// clang-format off
constexpr std::array kMagics = {
    Magic{"version https://git-lfs"sv, Errc::malformed, "a Git LFS pointer, not the file that it stands for", "run `git lfs pull`"},
    Magic{"PYTORCH1"sv, Errc::unsupported, "a preview of PyTorch's zip format, which no release wrote", "save it again with PyTorch"},
    Magic{"\x89HDF\r\n\x1a\n"sv, Errc::unsupported, "an HDF5 file", "convert it with the program that wrote it"},
    Magic{"7z\xbc\xaf\x27\x1c"sv, Errc::unsupported, "a 7z archive", kUnpack},
    Magic{"Rar!\x1a\x07"sv, Errc::unsupported, "a RAR archive", kUnpack},
    Magic{"\x1f\x8b"sv, Errc::unsupported, "a gzip file", kUnpack},
    Magic{"\xfd" "7zXZ\0"sv, Errc::unsupported, "an xz file", kUnpack},
    Magic{"\x28\xb5\x2f\xfd"sv, Errc::unsupported, "a zstd file", kUnpack},
    Magic{"BZh"sv, Errc::unsupported, "a bzip2 file", kUnpack},
};
// clang-format on

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::span<const std::byte> first_bytes_of(const io::ByteSource& source, std::span<std::byte> buffer) {
  const auto first =
      buffer.first(static_cast<std::size_t>(std::min<std::uint64_t>(source.size_bytes(), buffer.size())));
  source.read_at(0, first);
  return first;
}

std::string_view skip_space(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  return first == std::string_view::npos ? std::string_view{} : text.substr(first);
}

bool is_html(std::string_view text) {
  std::string start(skip_space(text).substr(0, 14));
  std::transform(start.begin(), start.end(), start.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; });
  return start.starts_with("<!doctype html") || start.starts_with("<html") || start.starts_with("<?xml");
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

// Beyond the magic: gzip has one method and five flags, and the blocks of bzip2 begin with the digits of pi.
bool is_surely_packed(const Magic& magic, std::string_view text) {
  if (magic.hint != kUnpack) return false;
  if (magic.bytes == "\x1f\x8b"sv) return text.size() > 3 && text[2] == '\x08' && (text[3] & 0xE0) == 0;
  if (magic.bytes == "BZh"sv) return text.substr(std::min<std::size_t>(4, text.size())).starts_with("1AY&SY");
  return true;
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

}  // namespace

Content detect(const io::ByteSource& source) try {
  const std::uint64_t size = source.size_bytes();
  if (size == 0) throw Error(Errc::malformed, "the file is empty").hint("an interrupted download or copy?");

  std::array<std::byte, kLookBytes> buffer;
  const auto first = first_bytes_of(source, buffer);
  const std::string_view text = as_text(first);

  const auto found = find_content(first);
  // Two programs could read two things in it: the one looks at the beginning, the other for a zip at the end.
  if (found && *found != Content::zip && ends_as_zip(source)) {
    throw Error(Errc::malformed, "the file ends as a zip archive, but does not begin as one")
        .at_byte(size - kZipEndBytes)
        .hint("two programs could read two different things in it; get it from where it came from again");
  }
  if (found) return *found;
  if (const auto magic = find_beginning(kMagics, text); magic != kMagics.end()) {
    throw Error(magic->code, "this is " + std::string(magic->what)).hint(magic->hint);
  }
  if (is_html(text)) {
    throw Error(Errc::malformed, "this is a web page, not a checkpoint")
        .hint("the download got an error or a login page; look at it in a browser");
  }
  if (skip_space(text).starts_with('{')) return Content::json;
  if (is_all_zero(text)) {
    throw Error(Errc::malformed, "the file begins with zeros only").hint("an interrupted download or copy?");
  }
  if (is_old_pickle(source, text)) return Content::pickle;
  return Content::safetensors;  // let its reader say what is wrong
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
  const std::string_view text = as_text(first_bytes_of(source, buffer));
  const auto magic = find_beginning(kMagics, text);
  if (magic == kMagics.end() || (within == Within::archive && !is_surely_packed(*magic, text))) return std::nullopt;
  return std::string(magic->what);
}

}  // namespace ballast
