#include "formats/gguf/header.hpp"

#include <array>
#include <limits>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <ballast/error.hpp>

#include "core/checked.hpp"
#include "core/remedy.hpp"
#include "core/text.hpp"
#include "formats/gguf/canonical.hpp"
#include "tensor/doors.hpp"

namespace ballast::gguf {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view kMagic = "GGUF";
constexpr std::uint32_t kNewestVersion = 3;

// Formats that came before GGUF, by their first bytes.
struct Ancestor {
  std::string_view magic, what;
};
constexpr std::array kAncestors = {
    Ancestor{"FUGG", "a GGUF file of a version that was never released"},
    Ancestor{"lmgg", "a GGML file, which came before GGUF"},
    Ancestor{"fmgg", "a GGMF file, which came before GGUF"},
    Ancestor{"tjgg", "a GGJT file, which came before GGUF"},
};

[[noreturn]] void throw_bad_magic(std::string_view magic) {
  for (const Ancestor& ancestor : kAncestors) {
    if (magic != ancestor.magic) continue;
    throw Error(Errc::unsupported, "this is " + std::string(ancestor.what))
        .at_byte(0)
        .hint("get the model again as GGUF; llama.cpp has read nothing else since 2023");
  }
  throw Error(Errc::malformed, "the file does not begin with \"GGUF\"").at_byte(0);
}

// Adds to an error the key or the tensor in which it occurred.
[[noreturn]] void rethrow_about(const std::string& thing, const Error& error) {
  throw error.saying(thing + ": " + error.message());
}

class HeaderReader {
 public:
  HeaderReader(const Source& source, const Limits& limits) : in_(source, limits.max_header_bytes), limits_(limits) {}

  Header read() {
    read_preamble();
    read_fields();
    header_.fields_end = in_.position();
    read_tensors();
    return finish();
  }

 private:
  bool has_short_counts() const noexcept { return header_.version == 1; }
  std::uint64_t length_bytes() const noexcept { return has_short_counts() ? 4 : 8; }
  std::uint64_t count(std::string_view what) { return has_short_counts() ? in_.u32(what) : in_.u64(what); }

  void read_preamble();
  void check_counts();
  TextRange string(std::string_view what);

  void read_fields();
  RawField read_field();
  void read_value(RawField& field);
  void read_array(RawField& field);
  void pass_over_arrays(RawField& field, std::uint64_t at);
  MetadataType value_type(std::string_view what);

  void read_tensors();
  TensorInfo read_tensor();
  void read_shape(TensorInfo& tensor);

  Header finish();

  HeaderText in_;
  const Limits& limits_;
  Header header_;
  std::uint64_t tensor_count_ = 0, key_count_ = 0;
  std::vector<RawField> fields_;
  std::vector<TextRange> names_;
};

void HeaderReader::read_preamble() {
  const TextRange magic = in_.bytes(kMagic.size(), "magic");
  if (in_.view(magic) != kMagic) throw_bad_magic(in_.view(magic));

  const std::uint64_t at = in_.position();
  header_.version = in_.u32("version");
  if ((header_.version & 0xFFFF) == 0) {  // a small number with its bytes reversed
    header_.version = __builtin_bswap32(header_.version);
    header_.order = std::endian::big;
    in_.set_order(std::endian::big);
  }
  if (header_.version == 0 || header_.version > kNewestVersion) {
    throw Error(Errc::unsupported, fmt::format("GGUF version {} is none that there is", header_.version))
        .at_byte(at)
        .hint("versions 1, 2 and 3 are read; the file is damaged, or newer than this program");
  }
  tensor_count_ = count("tensor count");
  key_count_ = count("key count");
  check_counts();
}

void HeaderReader::check_counts() {
  // A key has at least a length and a byte, a type, and a value of a byte; a tensor has at least a length, a rank
  // without dimensions, a type and an offset.
  const std::uint64_t smallest_field = length_bytes() + 1 + 4 + 1, smallest_tensor = length_bytes() + 4 + 4 + 8;
  in_.require_room_for(key_count_, smallest_field, "key count");
  in_.require_room_for(tensor_count_, smallest_tensor, "tensor count");
  const auto check_limit = [&](std::uint64_t count, std::uint64_t most, std::string_view what, std::string_view field) {
    if (count <= most) return;
    throw Error(Errc::limit, fmt::format("{} {} are more than the {} that are allowed", count, what, most))
        .at_byte(in_.position())
        .hint(raise_limit(field));
  };
  check_limit(key_count_, limits_.max_metadata_keys, "keys", "max_metadata_keys");
  check_limit(tensor_count_, limits_.max_tensors, "tensors", "max_tensors");
}

TextRange HeaderReader::string(std::string_view what) {
  const std::uint64_t size = count(what);
  if (size > in_.remaining()) [[unlikely]]
    in_.require_room_for(size, 1, fmt::format("length of the {}", what));
  return in_.bytes(size, what);
}

void HeaderReader::read_fields() {
  // Nothing is reserved for the count: it is limited by the size of the whole file, not by that of the header.
  for (std::uint64_t i = 0; i < key_count_; ++i) fields_.push_back(read_field());
}

RawField HeaderReader::read_field() {
  RawField field;
  const std::uint64_t at = in_.position();
  field.key = string("key");
  if (field.key.size == 0) throw Error(Errc::malformed, "a key is empty").at_byte(at);
  try {
    field.type = value_type("value type");
    read_value(field);
  } catch (const Error& error) {
    rethrow_about("key " + quote(in_.view(field.key)), error);
  }
  return field;
}

MetadataType HeaderReader::value_type(std::string_view what) {
  const std::uint64_t at = in_.position();
  const std::uint32_t number = in_.u32(what);
  if (number > static_cast<std::uint32_t>(MetadataType::f64))
    throw Error(Errc::malformed, fmt::format("{} {} is none that GGUF has", what, number)).at_byte(at);
  return static_cast<MetadataType>(number);
}

void HeaderReader::read_value(RawField& field) {
  switch (field.type) {
    case MetadataType::string: field.value = string("string"); return;
    case MetadataType::array: read_array(field); return;
    default: field.value = in_.bytes(width(field.type), "value"); return;
  }
}

// Passes over arrays of arrays, which gguf-py writes and llama.cpp refuses: they are kept as bytes, and read only to
// find where they end.
void HeaderReader::pass_over_arrays(RawField& field, std::uint64_t at) {
  if (has_short_counts() || header_.order != std::endian::little)
    throw Error(Errc::unsupported, "an array of arrays in an old or big-endian file").at_byte(at);
  constexpr std::size_t kDeepest = 8;
  constexpr std::uint64_t kSmallestArray = 4 + 8;
  in_.require_room_for(field.count, kSmallestArray, "element count");
  std::vector<std::uint64_t> left = {field.count};  // arrays that are still to come, at each depth
  while (!left.empty()) {
    if (left.back() == 0) {
      left.pop_back();
      continue;
    }
    --left.back();
    const MetadataType type = value_type("element type");
    const std::uint64_t items = count("element count");
    if (type == MetadataType::array) {
      if (left.size() == kDeepest) throw Error(Errc::limit, "arrays lie inside each other too deep").at_byte(at);
      in_.require_room_for(items, kSmallestArray, "element count");
      left.push_back(items);
    } else if (const std::uint64_t each = width(type); each != 0) {
      in_.require_room_for(items, each, "element count");
      in_.bytes(items * each, "array");
    } else {
      in_.require_room_for(items, length_bytes(), "element count");
      for (std::uint64_t i = 0; i < items; ++i) string("string");
    }
  }
  field.value.size = in_.position() - field.value.begin;
}

void HeaderReader::read_array(RawField& field) {
  const std::uint64_t at = in_.position();
  field.element_type = value_type("element type");
  field.count = count("element count");
  field.value.begin = in_.position();
  if (field.element_type == MetadataType::array) return pass_over_arrays(field, at);
  if (const std::uint64_t each = width(field.element_type); each != 0) {
    in_.require_room_for(field.count, each, "element count");
    field.value = in_.bytes(field.count * each, "array");
    return;
  }
  in_.require_room_for(field.count, length_bytes(), "element count");
  for (std::uint64_t i = 0; i < field.count; ++i) string("string");
  field.value.size = in_.position() - field.value.begin;
}

void HeaderReader::read_tensors() {
  for (std::uint64_t i = 0; i < tensor_count_; ++i) header_.tensors.push_back(read_tensor());
}

TensorInfo HeaderReader::read_tensor() {
  TensorInfo tensor;
  tensor.position = in_.position();
  const TextRange name = names_.emplace_back(string("tensor's name"));
  try {
    read_shape(tensor);
    tensor.type = in_.u32("type");
    tensor.offset = in_.u64("offset");
  } catch (const Error& error) {
    rethrow_about("tensor " + quote(in_.view(name)), error);
  }
  return tensor;
}

void HeaderReader::read_shape(TensorInfo& tensor) {
  const std::uint64_t at = in_.position();
  const std::uint32_t rank = in_.u32("rank");
  if (rank > kMaxRank) {
    throw Error(Errc::malformed, fmt::format("has {} dimensions, but GGUF allows {}", rank, kMaxRank)).at_byte(at);
  }
  std::uint64_t dims[kMaxRank] = {};
  for (std::uint32_t i = rank; i-- > 0;) dims[i] = count("dimension");
  tensor.shape = Shape(dims, rank);
  // ggml counts elements in signed numbers.
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
  const auto numel = tensor.shape.numel();
  bool fits = numel && *numel <= kMost;
  for (std::uint32_t i = 0; i < rank; ++i) fits = fits && dims[i] <= kMost;
  if (!fits) {
    throw Error(Errc::malformed, fmt::format("has more elements than 63 bits can count: {}", to_string(tensor.shape)))
        .at_byte(at);
  }
  tensor.numel = *numel;
}

Header HeaderReader::finish() {
  header_.end = in_.position();
  header_.text = std::move(in_).share();
  const auto view = [&](TextRange range) { return std::string_view(header_.text.get() + range.begin, range.size); };
  for (std::size_t i = 0; i < names_.size(); ++i) header_.tensors[i].name = view(names_[i]);

  if (const auto twice =
          Doors::adopt(header_.fields, canonical_fields(fields_, header_.text, header_.version, header_.order))) {
    const RawField& field = fields_[*twice];
    throw Error(Errc::malformed, "key " + quote(view(field.key)) + " is there twice")
        .at_byte(field.key.begin - length_bytes());
  }
  try {
    header_.alignment = alignment_of(header_.fields);
  } catch (Error& error) {
    const auto* field = header_.fields.find(kAlignmentKey);
    throw error.at_byte(fields_[static_cast<std::size_t>(field - &header_.fields[0])].value.begin);
  }
  header_.data_offset = fits(checked_align_up(header_.end, header_.alignment), "the beginning of the data");
  return std::move(header_);
}

}  // namespace

Header read_header(const Source& source, const Limits& limits) { return HeaderReader(source, limits).read(); }

std::uint64_t alignment_of(const TypedMetadata& fields) {
  const MetadataEntry* field = fields.find(kAlignmentKey);
  if (field == nullptr) return kDefaultAlignment;
  const std::uint64_t alignment = field->as_uint().value_or(0);
  if (field->type == MetadataType::u32 && std::has_single_bit(alignment) && alignment <= kMaxAlignment)
    return alignment;
  throw Error(Errc::malformed, fmt::format("{} is the {} {}, and must be a u32 and a power of two up to {}",
                                           kAlignmentKey, name(field->type), text(*field, 1), kMaxAlignment));
}

bool looks_like_gguf(std::span<const std::byte> first_bytes) {
  return std::string_view(reinterpret_cast<const char*>(first_bytes.data()), first_bytes.size()).starts_with(kMagic);
}

}  // namespace ballast::gguf
