#include "checkpoint/recognize/foreign_shapes.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "core/cursor.hpp"
#include "core/text.hpp"

namespace ballast::foreign {
namespace {

using namespace std::string_view_literals;

std::span<const std::byte> as_bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

bool is_between(std::int64_t value, std::int64_t least, std::int64_t most) { return value >= least && value <= most; }

std::string in_small_letters(std::string_view text) {
  std::string small(text);
  std::transform(small.begin(), small.end(), small.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; });
  return small;
}

// UTF-8 without control characters. The last character may have been cut off.
bool is_text(const FileLook& look) {
  const auto is_letter = [](char c) {
    return static_cast<unsigned char>(c) >= 0x20 ? c != 0x7f : "\t\n\r\f\x1b"sv.find(c) != std::string_view::npos;
  };
  constexpr std::size_t kLongestCharacter = 4;
  const bool is_whole = look.first.size() == look.source.size_bytes();
  const std::size_t wrong = look.first.size() - valid_utf8_prefix(look.first);
  return wrong < (is_whole ? 1 : kLongestCharacter) && std::all_of(look.first.begin(), look.first.end(), is_letter);
}

bool is_web_page(std::string_view start) {
  constexpr std::array kBeginnings = {"<head"sv, "<body"sv, "<title"sv, "<script"sv};
  if (!start.starts_with('<')) return false;
  if (start.find("<!doctype html") != std::string_view::npos || start.find("<html") != std::string_view::npos)
    return true;
  return std::any_of(kBeginnings.begin(), kBeginnings.end(), [&](auto tag) { return start.starts_with(tag); });
}

// A "[" may also begin a section of a configuration.
bool is_json_array(std::string_view start) {
  if (!start.starts_with('[')) return false;
  const std::string_view item = skip_space(start.substr(1));
  return !item.empty() && "{[]\"-0123456789"sv.find(item[0]) != std::string_view::npos;
}

std::string first_line(std::string_view text) {
  constexpr std::size_t kMost = 60;
  const std::string_view line = skip_space(text).substr(0, skip_space(text).find_first_of("\r\n"));
  return quote(line.substr(0, valid_utf8_prefix(line.substr(0, kMost))));
}

}  // namespace

std::string_view skip_space(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  return first == std::string_view::npos ? std::string_view{} : text.substr(first);
}

std::optional<ForeignFormat> text(const FileLook& look) {
  if (look.first.starts_with("\xff\xfe"sv) || look.first.starts_with("\xfe\xff"sv))
    return ForeignFormat{"a text file (UTF-16)", kOther};
  if (!is_text(look)) return std::nullopt;
  constexpr auto kByteOrderMark = "\xef\xbb\xbf"sv;
  std::string_view all = look.first;
  if (all.starts_with(kByteOrderMark)) all.remove_prefix(kByteOrderMark.size());
  const std::string start = in_small_letters(skip_space(all));
  if (is_web_page(start)) {
    return ForeignFormat{"a web page, not a checkpoint",
                         "the download got an error or a login page; look at it in a browser"};
  }
  if (start.starts_with("<?xml") || start.starts_with("<error")) {
    const bool is_error = start.find("<error") != std::string::npos;
    return ForeignFormat{"an XML file, not a checkpoint",
                         is_error ? "the download got an error instead of the file"sv : kOther};
  }
  if (is_json_array(start)) return ForeignFormat{"JSON, not a checkpoint", kOther};
  return ForeignFormat{"a text file, not a checkpoint: it begins with " + first_line(all), kOther};
}

// A LevelDB table ends in its magic number.
std::optional<ForeignFormat> tensorflow_table(const FileLook& look) {
  constexpr auto kEnd = "\x57\xfb\x80\x8b\x24\x75\x47\xdb"sv;
  constexpr std::uint64_t kFooterBytes = 48;
  if (look.source.size_bytes() < kFooterBytes) return std::nullopt;
  std::array<std::byte, kEnd.size()> last;
  look.source.read(look.source.size_bytes() - last.size(), last);
  if (!std::equal(last.begin(), last.end(), as_bytes(kEnd).begin())) return std::nullopt;
  return ForeignFormat{"a TensorFlow checkpoint, or the index of one", kConvert};
}

// A map whose first key is a word: {"params": ...}
std::optional<ForeignFormat> message_pack(const FileLook& look) {
  const auto at = [&](std::size_t i) {
    return i < look.first.size() ? static_cast<unsigned char>(look.first[i]) : 0xc1u;  // a byte that is never used
  };
  std::size_t i = 0;
  if (is_between(at(0), 0x81, 0x8f)) i = 1;  // a map of at most 15 entries
  if (at(0) == 0xde) i = 3;
  if (at(0) == 0xdf) i = 5;
  if (i == 0) return std::nullopt;
  std::size_t size = 0;
  if (is_between(at(i), 0xa1, 0xbf)) {
    size = at(i) & 0x1f;
    i += 1;
  } else if (at(i) == 0xd9) {
    size = at(i + 1);
    i += 2;
  }
  if (size == 0 || i + size >= look.first.size()) return std::nullopt;
  const std::string_view key = look.first.substr(i, size);
  const bool is_name = std::all_of(key.begin(), key.end(), [](char c) { return c > ' ' && c < 0x7f; });
  if (!is_name || at(i + size) == 0xc1) return std::nullopt;
  return ForeignFormat{"a MessagePack file, as flax writes checkpoints", kExport};
}

// u32 version, u16 size, "TransformerSpec\0"
std::optional<ForeignFormat> ctranslate2(const FileLook& look) {
  constexpr std::size_t kHeader = 6;
  if (look.first.size() < kHeader) return std::nullopt;
  Cursor in(as_bytes(look.first));
  const std::uint32_t version = in.u32("version");
  const std::uint16_t size = in.u16("size of a name");
  if (!is_between(version, 1, 99) || size > in.remaining()) return std::nullopt;
  if (!in.string(size, "name").ends_with("Spec\0"sv)) return std::nullopt;
  return ForeignFormat{"a model of CTranslate2", kConvert};
}

// i32 kind (3: a table), i32 number of the object, i32 entries, then a key: i32 kind (1: a number, 2: a string)
std::optional<ForeignFormat> lua_table(const FileLook& look) {
  constexpr std::size_t kHeader = 16;
  constexpr std::int32_t kTable = 3, kFirstObject = 1, kNumber = 1, kString = 2;
  if (look.first.size() < kHeader) return std::nullopt;
  Cursor in(as_bytes(look.first));
  if (in.i32("kind") != kTable || in.i32("object") != kFirstObject) return std::nullopt;
  const bool is_likely_count = is_between(in.i32("entries"), 1, 1'000'000);
  if (!is_likely_count || !is_between(in.i32("kind of a key"), kNumber, kString)) return std::nullopt;
  return ForeignFormat{"a file of Lua Torch (.t7)", kConvert};
}

// i32 each: dim, hidden_dim, layers, heads, kv_heads, vocabulary (negative without tied weights), longest sequence
std::optional<ForeignFormat> llama2_c(const FileLook& look) {
  constexpr std::size_t kHeader = 28;
  if (look.first.size() < kHeader) return std::nullopt;
  Cursor in(as_bytes(look.first));
  const std::int64_t dim = in.i32("dim"), hidden = in.i32("hidden dim"), layers = in.i32("layers");
  const std::int64_t heads = in.i32("heads"), kv_heads = in.i32("kv heads");
  const std::int64_t words = std::llabs(in.i32("vocabulary")), longest = in.i32("longest sequence");
  const bool is_likely = is_between(dim, 8, 1 << 16) && is_between(hidden, dim, 1 << 18) &&
                         is_between(layers, 1, 1024) && is_between(heads, 1, 1024) && is_between(kv_heads, 1, heads) &&
                         is_between(words, 16, 1 << 22) && is_between(longest, 8, 1 << 24);
  if (!is_likely || dim % heads != 0 || heads % kv_heads != 0) return std::nullopt;
  return ForeignFormat{"a model of llama2.c, by its first numbers", kExport};
}

// i32 each: major, minor, revision; then how many images were seen, and floats to the end
std::optional<ForeignFormat> darknet(const FileLook& look) {
  constexpr std::size_t kHeader = 20;
  if (look.first.size() < kHeader || look.source.size_bytes() % sizeof(float) != 0) return std::nullopt;
  Cursor in(as_bytes(look.first));
  const bool is_version =
      in.i32("major") == 0 && is_between(in.i32("minor"), 1, 9) && is_between(in.i32("revision"), 0, 9);
  if (!is_version || in.u64("images seen") > std::uint64_t{1} << 40) return std::nullopt;
  return ForeignFormat{"weights of Darknet, by their first numbers", kConvert};
}

}  // namespace ballast::foreign
