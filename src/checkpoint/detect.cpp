#include "checkpoint/detect.hpp"

#include <ballast/error.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "formats/safetensors/reader.hpp"

namespace ballast {
namespace {

constexpr std::size_t kLookBytes = 512;  // a tar says what it is at byte 257

struct Magic {
  std::size_t offset;
  std::string_view bytes;
  Errc code;
  std::string_view what;
  std::string_view hint;
};

using namespace std::string_view_literals;

constexpr std::string_view kNotYet = "this version reads safetensors files";
constexpr std::string_view kUnpack = "unpack it first";

// clang-format off
constexpr std::array kMagics = {
    Magic{0, "version https://git-lfs"sv, Errc::malformed, "a Git LFS pointer, not the file that it stands for", "run `git lfs pull`"},
    Magic{0, "PK\x03\x04"sv, Errc::unsupported, "a zip archive, as torch.save writes", kNotYet},
    Magic{0, "PK\x05\x06"sv, Errc::unsupported, "an empty zip archive", kNotYet},
    Magic{0, "GGUF"sv, Errc::unsupported, "a GGUF file", kNotYet},
    Magic{0, "\x80\x02\x8a\x0al\xfc\x9c"sv, Errc::unsupported, "a PyTorch checkpoint of the years before 1.6", kNotYet},
    Magic{0, "\x80\x02"sv, Errc::unsupported, "a Python pickle", kNotYet},
    Magic{0, "\x80\x03"sv, Errc::unsupported, "a Python pickle", kNotYet},
    Magic{0, "\x80\x04"sv, Errc::unsupported, "a Python pickle", kNotYet},
    Magic{0, "\x80\x05"sv, Errc::unsupported, "a Python pickle", kNotYet},
    Magic{257, "ustar"sv, Errc::unsupported, "a tar archive", kUnpack},
    Magic{0, "\x93NUMPY"sv, Errc::unsupported, "a NumPy file", kNotYet},
    Magic{0, "\x89HDF\r\n\x1a\n"sv, Errc::unsupported, "an HDF5 file", "convert it with the program that wrote it"},
    Magic{0, "7z\xbc\xaf\x27\x1c"sv, Errc::unsupported, "a 7z archive", kUnpack},
    Magic{0, "\x1f\x8b"sv, Errc::unsupported, "a gzip file", kUnpack},
    Magic{0, "\xfd" "7zXZ\0"sv, Errc::unsupported, "an xz file", kUnpack},
    Magic{0, "\x28\xb5\x2f\xfd"sv, Errc::unsupported, "a zstd file", kUnpack},
    Magic{0, "BZh"sv, Errc::unsupported, "a bzip2 file", kUnpack},
};
// clang-format on

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
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

const Magic* find_magic(std::string_view text) {
  for (const Magic& magic : kMagics) {
    if (text.size() >= magic.offset && text.substr(magic.offset).starts_with(magic.bytes)) return &magic;
  }
  return nullptr;
}

bool is_all_zero(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c == '\0'; });
}

}  // namespace

Content detect(const io::ByteSource& source) try {
  const std::uint64_t size = source.size_bytes();
  if (size == 0) throw Error(Errc::malformed, "the file is empty").hint("an interrupted download or copy?");

  std::array<std::byte, kLookBytes> buffer;
  const auto first = std::span(buffer).first(static_cast<std::size_t>(std::min<std::uint64_t>(size, kLookBytes)));
  source.read_at(0, first);
  const std::string_view text = as_text(first);

  // First, because a header's length can look like the magic of any other format.
  if (safetensors::looks_like_safetensors(first)) return Content::safetensors;
  if (const Magic* magic = find_magic(text)) {
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
  return Content::safetensors;  // let its reader say what is wrong
} catch (Error& error) {
  throw error.in(source.name());
}

}  // namespace ballast
