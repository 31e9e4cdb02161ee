#include "formats/npy/reader.hpp"

#include <fmt/format.h>
#include <ballast/error.hpp>

#include <array>
#include <charconv>
#include <string>
#include <vector>

#include "core/cursor.hpp"
#include "core/text.hpp"
#include "tensor/source_storage.hpp"

namespace ballast::npy {
namespace {

constexpr std::uint64_t kMagicBytes = 8;             // "\x93NUMPY", major and minor version
constexpr std::uint64_t kMostHeaderBytes = 1 << 20;  // NumPy itself stops at 10 000

// {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
// This is a Python literal; the parser understands only what a header needs.
class DictParser {
 public:
  DictParser(std::string_view text, std::uint64_t offset) : text_(text), offset_(offset) {}

  Header parse(const Limits& limits) {
    Header header;
    bool has_type = false, has_order = false, has_shape = false;
    expect('{');
    while (!take('}')) {
      const std::string key = string();
      expect(':');
      if (key == "descr" && !has_type) {
        has_type = true;
        header.type = type();
      } else if (key == "fortran_order" && !has_order) {
        has_order = true;
        header.is_fortran = boolean();
      } else if (key == "shape" && !has_shape) {
        has_shape = true;
        header.shape = shape(limits);
      } else {
        fail(fmt::format("the key {} is unknown or there twice", quote(key)));
      }
      if (!take(',')) {
        expect('}');
        break;
      }
    }
    if (!has_type || !has_order || !has_shape) fail("a key is missing");
    skip_space();
    if (at_ != text_.size()) fail("something follows the dict");
    return header;
  }

 private:
  NumpyType type() {
    skip_space();
    if (at_ < text_.size() && text_[at_] == '[')
      throw Error(Errc::unsupported, "a NumPy array of records").at_byte(offset_ + at_);
    return numpy_type(string());
  }

  bool boolean() {
    skip_space();
    for (const auto& [word, value] : {std::pair{std::string_view("True"), true}, {std::string_view("False"), false}}) {
      if (!text_.substr(at_).starts_with(word)) continue;
      at_ += word.size();
      return value;
    }
    fail("neither True nor False");
  }

  Shape shape(const Limits& limits) {
    std::vector<std::uint64_t> dims;
    expect('(');
    while (!take(')')) {
      if (dims.size() == limits.max_rank) fail("the array has too many dimensions");
      dims.push_back(number());
      if (!take(',')) {
        expect(')');
        break;
      }
    }
    return Shape(dims);
  }

  std::uint64_t number() {
    skip_space();
    std::uint64_t value = 0;
    const char* begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error != std::errc{}) fail("no number of 64 bits");
    at_ += static_cast<std::size_t>(end - begin);
    if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // as Python 2 writes it
    return value;
  }

  std::string string() {
    skip_space();
    const char mark = at_ < text_.size() ? text_[at_] : '\0';
    if (mark != '\'' && mark != '"') fail("no string");
    const auto end = text_.find(mark, at_ + 1);
    if (end == std::string_view::npos) fail("a string without an end");
    std::string value(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return value;
  }

  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  bool take(char c) {
    skip_space();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) fail(fmt::format("no '{}'", c));
  }
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(Errc::malformed, "the NumPy header: " + what).at_byte(offset_ + at_);
  }

  std::string_view text_;
  std::uint64_t offset_;
  std::size_t at_ = 0;
};

}  // namespace

Header read_header(const Source& source, const Limits& limits) try {
  std::array<std::byte, kMagicBytes + 4> start;
  const auto known =
      std::span(start).first(static_cast<std::size_t>(std::min<std::uint64_t>(start.size(), source.size_bytes())));
  source.read(0, known);
  Cursor in(known);
  if (in.string(6, "magic") != std::string_view("\x93NUMPY", 6))
    throw Error(Errc::malformed, "not a NumPy file").at_byte(0);
  const unsigned major = in.u8("version");
  in.skip(1, "version");
  if (major < 1 || major > 3) throw Error(Errc::unsupported, fmt::format("version {} of NumPy's format", major));
  const std::uint64_t length = major == 1 ? in.u16("length of the header") : in.u32("length of the header");
  if (length > kMostHeaderBytes)
    throw Error(Errc::limit, fmt::format("the NumPy header has {} bytes", length)).at_byte(kMagicBytes);

  const std::uint64_t first = in.position();
  std::string text(static_cast<std::size_t>(length), '\0');
  source.read(first, std::as_writable_bytes(std::span(text)));
  Header header = DictParser(text, first).parse(limits);
  header.data_offset = first + length;
  return header;
} catch (Error& error) {
  throw error.in(source.name());
}

Tensor read_tensor(const SourcePtr& source, const Header& header) try {
  if (!header.type.dtype) {
    throw Error(Errc::unsupported, fmt::format("a NumPy array of {}", quote(header.type.code)))
        .hint("only arrays of numbers and of objects can be opened");
  }
  const auto count = header.shape.numel();
  const auto size = count ? bytes_of(*header.type.dtype, *count) : std::nullopt;
  const std::uint64_t rest = source->size_bytes() - header.data_offset;
  if (!size || *size != rest) {
    throw Error(Errc::malformed, fmt::format("{} {} does not take the {} bytes that follow the header",
                                             name(*header.type.dtype), to_string(header.shape), rest))
        .at_byte(header.data_offset);
  }
  return numpy_view(header.type, header.shape, header.is_fortran, source_storage(source, header.data_offset, rest));
} catch (Error& error) {
  throw error.in(source->name());
}

}  // namespace ballast::npy
