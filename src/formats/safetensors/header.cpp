#include "formats/safetensors/header.hpp"

#include <ballast/error.hpp>

#include <algorithm>
#include <cstring>
#include <deque>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "core/huge_pages.hpp"
#include "core/json_text.hpp"
#include "core/remedy.hpp"
#include "core/text.hpp"
#include "tensor/doors.hpp"

namespace ballast::safetensors {
namespace {

// The shortest entry: "":{"dtype":"U8","shape":[],"data_offsets":[0,1]},
constexpr std::size_t kSmallestEntry = 49;

constexpr std::size_t kSample = 64;  // entries that are read before room is made for the rest

class HeaderParser {
 public:
  HeaderParser(std::shared_ptr<const PaddedText> text, StoragePtr data, const Limits& limits)
      : text_(std::move(text)),
        json_(*text_, kLengthBytes, limits.max_json_depth),
        data_(std::move(data)),
        data_bytes_(data_->size_bytes()),
        limits_(limits) {}

  Header parse() {
    json_.check_utf8();
    header_.leading_space = !text_->view().empty() && text_->view().front() != '{';
    Doors::keep_alive(header_.tensors, text_);

    if (!json_.take('{')) json_.fail("a header must begin with '{'");
    if (!json_.take('}')) {
      do entry();
      while (json_.take(','));
      json_.expect('}', "or ',' after an entry of the header");
    }
    json_.skip_space();
    if (!json_.at_end()) json_.fail("more text after the end of the header's object");
    if (!in_order_) put_in_order();
    if (Doors::adopt(header_.tensors, std::move(entries_))) refuse_repeated_name(header_.tensors);
    return std::move(header_);
  }

 private:
  struct Fields {
    DType dtype = DType::u8;
    Shape shape;
    std::uint64_t begin = 0, end = 0;
    bool has_dtype = false, has_shape = false, has_offsets = false;
  };

  void entry() {
    json_.skip_space();
    const std::uint64_t byte = json_.byte();
    const auto name = json_.string("a tensor's name");
    json_.expect(':', "after a name");
    if (name.value == "__metadata__") {
      metadata(byte);
      header_.metadata_text = {byte - kLengthBytes, json_.byte() - kLengthBytes};
      return;
    }
    if (entries_.size() == limits_.max_tensors) {
      throw Error(Errc::limit, "more than " + std::to_string(limits_.max_tensors) + " tensors")
          .at_byte(byte)
          .hint(raise_limit("max_tensors"));
    }
    if (entries_.size() == kSample) reserve(byte);
    tensor(name.in_text ? name.value : keep(name.value), byte);
  }

  // The text has a name with escapes only in its escaped form, so the name itself is kept here.
  std::string_view keep(std::string_view name) {
    if (!unescaped_) Doors::keep_alive(header_.tensors, unescaped_ = std::make_shared<std::deque<std::string>>());
    return unescaped_->emplace_back(name);
  }

  // Entries are of similar length: the first few tell how many to expect, never more than the text has room for.
  void reserve(std::uint64_t byte) {
    const std::uint64_t seen = byte - kLengthBytes, size = text_->view().size();
    const std::uint64_t estimate = size / (seen / kSample + 1) * 65 / 64 + kSample;
    const std::size_t count = std::min(estimate, size / kSmallestEntry + 1);
    entries_.reserve(count);
    bytes_.reserve(count);
    prefer_huge_pages(entries_.data() + entries_.size(), (count - entries_.size()) * sizeof(StateDict::Entry));
  }

  void metadata(std::uint64_t byte) {
    if (std::exchange(has_metadata_, true)) json_.fail_at("\"__metadata__\" is there twice", byte);
    if (json_.take_null()) return;
    json_.expect('{', "to begin \"__metadata__\"");
    if (json_.take('}')) return;
    do {
      json_.skip_space();
      const std::uint64_t key_byte = json_.byte();
      if (header_.metadata.size() == limits_.max_metadata_keys) {
        throw Error(Errc::limit,
                    "\"__metadata__\" has more than " + std::to_string(limits_.max_metadata_keys) + " keys")
            .at_byte(key_byte)
            .hint(raise_limit("max_metadata_keys"));
      }
      std::string key(json_.string("a key of \"__metadata__\"").value);
      json_.expect(':', "after a key");
      const auto value = json_.string("a value of \"__metadata__\"");
      const auto [place, is_new] = header_.metadata.try_emplace(std::move(key), value.value);
      if (!is_new) json_.fail_at("\"__metadata__\" has " + quote(place->first) + " twice", key_byte);
    } while (json_.take(','));
    json_.expect('}', "or ',' in \"__metadata__\"");
  }

  void tensor(std::string_view name, std::uint64_t byte) {
    Fields fields = fields_of(name);
    if (!has_right_size(fields)) explain_size(name, byte, fields);
    entries_.emplace_back(name, Doors::unchecked(fields.dtype, std::move(fields.shape), data_, fields.begin));
    bytes_.push_back(byte);
    in_order_ = in_order_ && fields.begin == header_.data_end;
    header_.data_end = std::max(header_.data_end, fields.end);
  }

  Fields fields_of(std::string_view name) try {
    const char* start = json_.mark();
    Fields fields;
    if (usual_fields(fields)) return fields;
    json_.return_to(start);
    return all_fields();
  } catch (const Error& error) {
    // The error knows the byte, but not the tensor.
    throw error.saying("tensor " + quote(name) + ": " + error.message()).about(name).at_byte(0);
  }

  // Reads the fields as every known writer puts them: in this order, without a space. Returns false if they differ; the
  // caller then reads them again from the beginning.
  bool usual_fields(Fields& fields) {
    if (!json_.take_exactly("{\"dtype\":\"")) return false;
    if (!usual_dtype(fields)) return false;
    if (!json_.take_exactly("\",\"shape\":[")) return false;
    dims(fields);
    if (!json_.take_exactly(",\"data_offsets\":[")) return false;
    two_offsets(fields);
    return json_.take_exactly("}");
  }

  // The dtype is nearly always that of the tensor before.
  bool usual_dtype(Fields& fields) {
    const std::string_view text = json_.plain_run();
    if (text != last_dtype_text_) {
      const auto dtype = dtype_from_name(text);
      if (!dtype || !info(*dtype).in_safetensors) return false;
      last_dtype_ = *dtype;
      last_dtype_text_ = text;
    }
    fields.dtype = last_dtype_;
    fields.has_dtype = true;
    return true;
  }

  // {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, in any order; other fields are passed over.
  Fields all_fields() {
    Fields fields;
    KeysOfObject others;
    const auto once = [&](bool given, std::uint64_t key_byte, const char* key) {
      if (given) json_.fail_at(std::string("\"") + key + "\" is there twice", key_byte);
    };
    json_.expect('{', "to begin it");
    if (json_.take('}')) return fields;
    do {
      json_.skip_space();
      const std::uint64_t key_byte = json_.byte();
      const std::string_view key = json_.string("a field's name").value;
      if (key == "dtype") {
        once(std::exchange(fields.has_dtype, true), key_byte, "dtype");
        fields.dtype = dtype();
      } else if (key == "shape") {
        once(std::exchange(fields.has_shape, true), key_byte, "shape");
        shape(fields);
      } else if (key == "data_offsets") {
        once(std::exchange(fields.has_offsets, true), key_byte, "data_offsets");
        offsets(fields);
      } else {
        others.add(key);
        json_.expect(':', "after a field's name");
        json_.skip_value(/*depth=*/3);
      }
    } while (json_.take(','));
    if (others.has_one_twice()) json_.fail("a field is there twice");
    json_.expect('}', "or ',' in the entry of a tensor");
    return fields;
  }

  DType dtype() {
    json_.expect(':', "after \"dtype\"");
    json_.skip_space();
    const std::uint64_t byte = json_.byte();
    const std::string_view text = json_.string("a dtype").value;
    const auto dtype = dtype_from_name(text);
    if (!dtype || !info(*dtype).in_safetensors)
      throw Error(Errc::unsupported, "unknown dtype " + quote(text)).at_byte(byte);
    return *dtype;
  }

  void shape(Fields& fields) {
    json_.expect(':', "after \"shape\"");
    json_.expect('[', "to begin a shape");
    dims(fields);
  }

  // Reads from behind the opening bracket on.
  void dims(Fields& fields) {
    fields.has_shape = true;
    if (json_.take(']')) return;
    std::uint64_t few[4] = {};
    std::uint32_t rank = 0;
    bool more = true;
    while (more && rank < 4) {
      if (rank >= limits_.max_rank) refuse_rank();
      few[rank++] = json_.unsigned_integer("a dimension");
      more = json_.take(',');
    }
    fields.shape = more ? many_dims(few) : Shape(few, rank);
    json_.expect(']', "or ',' in a shape");
  }

  // Reads a shape of more than four dimensions, from the fifth on.
  [[gnu::noinline]] Shape many_dims(const std::uint64_t (&first)[4]) {
    std::vector<std::uint64_t> dims(first, first + 4);
    do {
      if (dims.size() >= limits_.max_rank) refuse_rank();
      dims.push_back(json_.unsigned_integer("a dimension"));
    } while (json_.take(','));
    return Shape(dims);
  }

  [[noreturn, gnu::noinline]] void refuse_rank() const {
    throw Error(Errc::limit, "more than " + std::to_string(limits_.max_rank) + " dimensions")
        .at_byte(json_.byte())
        .hint(raise_limit("max_rank"));
  }

  void offsets(Fields& fields) {
    json_.expect(':', "after \"data_offsets\"");
    json_.expect('[', "to begin \"data_offsets\"");
    two_offsets(fields);
  }

  void two_offsets(Fields& fields) {
    fields.has_offsets = true;
    fields.begin = json_.unsigned_integer("an offset");
    json_.expect(',', "between two offsets");
    fields.end = json_.unsigned_integer("an offset");
    json_.expect(']', "after two offsets");
  }

  // Whether dtype, shape and offsets are there and agree, and the data have these bytes.
  bool has_right_size(const Fields& fields) const noexcept {
    if (!fields.has_dtype || !fields.has_shape || !fields.has_offsets) return false;
    const auto count = fields.shape.numel();
    const auto size = count ? bytes_of(fields.dtype, *count) : std::nullopt;
    return size && fields.begin <= fields.end && fields.end - fields.begin == *size && fields.end <= data_bytes_;
  }

  [[noreturn, gnu::noinline]] void explain_size(std::string_view name, std::uint64_t byte, const Fields& fields) const {
    const auto fail = [&](const std::string& what) { json_.fail_at("tensor " + quote(name) + " " + what, byte); };
    const char* missing = !fields.has_dtype     ? "dtype"
                          : !fields.has_shape   ? "shape"
                          : !fields.has_offsets ? "data_offsets"
                                                : nullptr;
    if (missing) fail(std::string("has no \"") + missing + "\"");
    if (fields.begin > fields.end) {
      fail("begins at byte " + std::to_string(fields.begin) + " and ends before it, at " + std::to_string(fields.end));
    }
    const auto count = fields.shape.numel();
    if (!count) fail("has the shape " + to_string(fields.shape) + ", whose elements 64 bits cannot count");
    const std::string type(ballast::name(fields.dtype));
    const auto size = bytes_of(fields.dtype, *count);
    if (!size) {
      const bool fits = *count <= UINT64_MAX / 64;
      fail("has " + std::to_string(*count) + " elements of " + type +
           (fits ? ", which do not fill whole bytes" : ", whose bytes 64 bits cannot count"));
    }
    if (fields.end - fields.begin != *size) {
      fail("is " + type + " " + to_string(fields.shape) + ", which takes " + std::to_string(*size) +
           " bytes, but its offsets span " + std::to_string(fields.end - fields.begin));
    }
    throw Error(Errc::malformed, "tensor " + quote(name) + " ends at byte " + std::to_string(fields.end) +
                                     " but the data has " + std::to_string(data_bytes_) + " bytes")
        .at_byte(byte)
        .hint("the file was cut short: an interrupted download or copy?");
  }

  // Entries may stand in any order; by offset they must follow each other without a hole or an overlap.
  void put_in_order() {
    const auto begin = [&](std::size_t i) { return entries_[i].tensor.offset(); };
    std::vector<std::uint64_t> ends;
    ends.reserve(entries_.size());
    for (const StateDict::Entry& entry : entries_) ends.push_back(entry.tensor.offset() + entry.tensor.nbytes());
    std::vector<std::uint32_t> order(entries_.size());
    std::iota(order.begin(), order.end(), 0u);
    std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      return std::tuple(begin(a), ends[a], a) < std::tuple(begin(b), ends[b], b);
    });

    std::uint64_t expected = 0;
    for (const std::uint32_t i : order) {
      if (begin(i) != expected) {
        refuse_repeated_name(entries_);  // a repeated name, if there is one, explains more than the offset
        json_.fail_at("tensor " + quote(entries_[i].name) + " begins at byte " + std::to_string(begin(i)) +
                          " of the data, but the one before it ends at " + std::to_string(expected),
                      bytes_[i]);
      }
      expected = ends[i];
    }

    // The entries are moved along each cycle, because a second list of all entries would take most of the memory.
    for (std::uint32_t i = 0; i < order.size(); ++i) {
      for (std::uint32_t at = i; order[at] != at;) {
        const std::uint32_t from = std::exchange(order[at], at);
        if (from == i) break;
        std::swap(entries_[at], entries_[from]);
        std::swap(bytes_[at], bytes_[from]);
        at = from;
      }
    }
  }

  // Refuses the second of two, in the order of the text.
  template <class Entries>
  void refuse_repeated_name(const Entries& entries) const {
    std::vector<std::pair<std::string_view, std::uint64_t>> names;
    for (std::size_t i = 0; i < entries.size(); ++i) names.emplace_back(entries[i].name, bytes_[i]);
    std::sort(names.begin(), names.end());
    const auto same = [](const auto& a, const auto& b) { return a.first == b.first; };
    const auto twice = std::adjacent_find(names.begin(), names.end(), same);
    if (twice != names.end())
      json_.fail_at("tensor " + quote(twice->first) + " is there twice", std::next(twice)->second);
  }

  std::shared_ptr<const PaddedText> text_;
  JsonText json_;
  StoragePtr data_;
  std::uint64_t data_bytes_;
  const Limits& limits_;

  Header header_;
  bool has_metadata_ = false;
  bool in_order_ = true;  // so far, each tensor began where the one before it ended
  std::vector<StateDict::Entry> entries_;
  std::vector<std::uint64_t> bytes_;                    // where each entry begins in the file
  std::shared_ptr<std::deque<std::string>> unescaped_;  // names, made when first needed
  std::string_view last_dtype_text_ = "U8";             // the name of last_dtype_
  DType last_dtype_ = DType::u8;
};

}  // namespace

Header parse_header(std::shared_ptr<const PaddedText> text, StoragePtr data, const Limits& limits) {
  return HeaderParser(std::move(text), std::move(data), limits).parse();
}

}  // namespace ballast::safetensors
