// A record is the digest (u64, XXH3) of all that follows, and then what the describe() functions list; the same
// functions write and read. Integers are little-endian, a string is its length (u32) and its bytes, a list its count
// (u64) and its items.

#include "cache/record.hpp"

#include <ballast/error.hpp>
#include <ballast/source.hpp>

#include <bit>
#include <concepts>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <variant>

#include "core/base64.hpp"
#include "core/cursor.hpp"
#include "formats/gguf/encode.hpp"
#include "formats/gguf/header.hpp"
#include "kernels/digest.hpp"

namespace ballast {
namespace {

[[noreturn]] void fail() { throw Error(Errc::malformed, "the record is not one that this version writes"); }

class Writer {
 public:
  void item(std::unsigned_integral auto value) {
    static_assert(std::endian::native == std::endian::little);
    out_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void item(std::int64_t value) { item(std::bit_cast<std::uint64_t>(value)); }
  void item(double value) { item(std::bit_cast<std::uint64_t>(value)); }
  void item(std::string_view text) {
    if (text.size() > UINT32_MAX) throw Error(Errc::limit, "a text has more than 4 GiB");
    item(static_cast<std::uint32_t>(text.size()));
    out_ += text;
  }
  void item(const std::string& text) { item(std::string_view(text)); }
  void item(DType dtype) { item(name(dtype)); }
  void item(const Shape& shape) {
    item(static_cast<std::uint32_t>(shape.rank()));
    for (const std::uint64_t dim : shape) item(dim);
  }
  template <class Enum>
  void one_of(Enum value, Enum) {
    item(static_cast<std::uint8_t>(value));
  }
  void item(std::monostate) {}
  template <class... T>
  void item(const std::variant<T...>& value) {
    item(static_cast<std::uint8_t>(value.index()));
    std::visit([&](const auto& alternative) { item(alternative); }, value);
  }
  void item(const std::optional<std::size_t>& value) {
    item(static_cast<std::uint8_t>(value.has_value()));
    item(std::uint64_t{value.value_or(0)});
  }
  template <class T>
  void item(std::vector<T>& list) {
    item(std::uint64_t{list.size()});
    for (T& one : list) describe(*this, one);
  }
  template <class T>
  void item(std::map<std::string, T, std::less<>>& map) {
    item(std::uint64_t{map.size()});
    for (auto& [key, value] : map) {
      item(key);
      describe(*this, value);
    }
  }
  // Written as a GGUF file without tensors: that is the shortest code, since a reader for it exists.
  void item(const TypedMetadata& fields) {
    if (fields.empty()) return item(std::string_view());
    const auto bytes = gguf::encoded_fields(gguf::kVersion, 0, fields);
    item(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  }

  const std::string& bytes() const { return out_; }

 private:
  std::string out_;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : in_(bytes) {}

  void item(bool& value) { value = in_.u8(kWhat) != 0; }
  void item(std::uint8_t& value) { value = in_.u8(kWhat); }
  void item(std::uint32_t& value) { value = in_.u32(kWhat); }
  void item(std::uint64_t& value) { value = in_.u64(kWhat); }
  void item(std::int64_t& value) { value = in_.i64(kWhat); }
  void item(double& value) { value = in_.f64(kWhat); }
  void item(std::string_view& text) { text = in_.string(in_.u32(kWhat), kWhat); }
  void item(std::string& text) { text = in_.string(in_.u32(kWhat), kWhat); }
  void item(DType& dtype) {
    const auto known = dtype_from_name(in_.string(in_.u32(kWhat), kWhat));
    if (!known) fail();
    dtype = *known;
  }
  void item(Shape& shape) {
    const std::uint32_t rank = in_.u32(kWhat);
    in_.require_room_for(rank, sizeof(std::uint64_t), "rank");
    std::vector<std::uint64_t> dims(rank);
    for (std::uint64_t& dim : dims) item(dim);
    shape = Shape(dims);
  }
  template <class Enum>
  void one_of(Enum& value, Enum last) {
    const std::uint8_t number = in_.u8(kWhat);
    if (number > static_cast<std::uint8_t>(last)) fail();
    value = static_cast<Enum>(number);
  }
  void item(std::monostate) {}
  template <class... T>
  void item(std::variant<T...>& value) {
    const std::uint8_t index = in_.u8(kWhat);
    if (index >= sizeof...(T)) fail();
    [&]<std::size_t... i>(std::index_sequence<i...>) {
      ((i == index ? item(value.template emplace<i>()) : void()), ...);
    }
    (std::index_sequence_for<T...>());
  }
  void item(std::optional<std::size_t>& value) {
    const bool has_value = in_.u8(kWhat) != 0;
    const std::uint64_t number = in_.u64(kWhat);
    if (has_value) value = static_cast<std::size_t>(number);
  }
  // Nothing is reserved: a count cannot be trusted, while every item that is really there takes at least a byte.
  template <class T>
  void item(std::vector<T>& list) {
    for (std::uint64_t left = in_.u64(kWhat); left > 0; --left) describe(*this, list.emplace_back());
  }
  template <class T>
  void item(std::map<std::string, T, std::less<>>& map) {
    for (std::uint64_t left = in_.u64(kWhat); left > 0; --left) {
      std::string key;
      item(key);
      describe(*this, map[std::move(key)]);
    }
  }
  void item(TypedMetadata& fields) {
    const auto text = in_.bytes(in_.u32(kWhat), kWhat);
    if (text.empty()) return;
    fields = gguf::read_header(*memory_source({text.begin(), text.end()}), {}).fields;
  }

  bool at_end() const { return in_.at_end(); }

 private:
  static constexpr std::string_view kWhat = "record";
  Cursor in_;
};

// A note with its subject, since the target may be spelled otherwise next time.
struct RecordedNote {
  std::uint64_t of = 0;  // 0: nothing known, 1: the target, from 2 on: one of the files
  std::string rest;      // the rest of Note::where: "!/archive/data.pkl"
  Note note;
};

void describe(auto& coder, std::string& text) { coder.item(text); }

void describe(auto& coder, SourceIdentity& source) {
  coder.item(source.name);
  coder.item(source.file.size_bytes);
  coder.item(source.file.modified_ns);
  coder.item(source.file.changed_ns);
  coder.item(source.file.inode);
  coder.item(source.ends_digest);
}

void describe(auto& coder, CacheKey& key) {
  coder.item(key.version);
  coder.item(key.options_digest);
  coder.item(key.sources);
}

void describe(auto& coder, RecordedNote& note) {
  coder.item(note.of);
  coder.item(note.rest);
  coder.item(note.note.text);
  coder.one_of(note.note.kind, Note::Kind::remark);
}

void describe(auto& coder, PlainValue& value) {
  coder.item(value.path);
  coder.item(value.type);
  coder.item(value.value);
}

void describe(auto& coder, Composite& composite) {
  coder.item(composite.name);
  coder.item(composite.layout);
  coder.item(composite.shape);
  coder.item(composite.parts);
  coder.item(composite.scale);
  coder.item(composite.zero_point);
  coder.item(composite.axis);
}

void describe(auto& coder, UnknownGgml& unknown) {
  coder.item(unknown.id);
  coder.item(unknown.shape);
}

void describe(auto& coder, Root& root) {
  coder.item(root.path);
  coder.item(root.tensors);
}

void describe(auto& coder, RecordedTensor& tensor) {
  coder.item(tensor.name);
  coder.item(tensor.dtype);
  coder.item(tensor.shape);
  coder.one_of(tensor.place, RecordedTensor::Place::earlier);
  coder.item(tensor.stored_name);
  coder.item(tensor.same_as);
}

// Files are the sources of the key, and a checkpoint that names something dangerous is never cached.
void describe(auto& coder, CacheRecord& record, std::vector<RecordedNote>& notes) {
  describe(coder, record.key);
  coder.item(record.modified_s);
  coder.item(record.checkpoint.metadata);
  coder.item(record.checkpoint.typed_metadata);
  coder.item(record.checkpoint.aliases);
  coder.item(record.checkpoint.values);
  coder.item(record.checkpoint.composites);
  coder.item(record.checkpoint.unknown_ggml);
  coder.item(record.checkpoint.roots);
  coder.item(notes);
  coder.item(record.checkpoint.unused_bytes);
  coder.one_of(record.checkpoint.format, static_cast<Format>(kFormatNames.size() - 1));
  coder.item(record.checkpoint.shards);
  coder.item(record.tensors);
}

RecordedNote to_recorded(Note note, const Checkpoint& checkpoint, const std::string& target) {
  const std::string where = note.where;
  const auto is_about = [&](const std::string& path) { return where == path || where.starts_with(path + "!"); };
  RecordedNote recorded{0, where, std::move(note)};
  if (is_about(target)) recorded = {1, recorded.rest.substr(target.size()), std::move(recorded.note)};
  for (std::size_t i = 0; i < checkpoint.files.size() && recorded.of == 0; ++i) {
    const std::string& path = checkpoint.files[i].path;
    if (is_about(path)) recorded = {i + 2, recorded.rest.substr(path.size()), std::move(recorded.note)};
  }
  return recorded;
}

Note from_recorded(RecordedNote recorded, const Checkpoint& checkpoint, const std::string& target) {
  if (recorded.of > checkpoint.files.size() + 1) fail();
  if (recorded.of == 1) recorded.note.where = target;
  if (recorded.of > 1) recorded.note.where = checkpoint.files[static_cast<std::size_t>(recorded.of) - 2].path;
  recorded.note.where += recorded.rest;
  return std::move(recorded.note);
}

}  // namespace

std::string encode_cache_record(CacheRecord record, const std::string& target) {
  std::vector<RecordedNote> notes;
  for (const Note& note : record.checkpoint.notes) notes.push_back(to_recorded(note, record.checkpoint, target));
  Writer content, whole;
  describe(content, record, notes);
  const auto bytes = std::as_bytes(std::span(content.bytes()));
  whole.item(kernels::xxh3_64(bytes));
  const std::string both = whole.bytes() + content.bytes();
  return to_base64(std::as_bytes(std::span(both)));
}

CacheRecord decode_cache_record(std::string_view text, const std::string& target) {
  auto bytes = from_base64(text);
  if (!bytes) fail();
  const auto owner = std::make_shared<const std::vector<std::byte>>(std::move(*bytes));
  Cursor front(*owner);
  const std::uint64_t digest = front.u64("digest");
  const auto content = front.bytes(front.remaining(), "record");
  if (kernels::xxh3_64(content) != digest) fail();

  CacheRecord record;
  std::vector<RecordedNote> notes;
  Reader reader(content);
  describe(reader, record, notes);
  if (!reader.at_end()) fail();
  record.names = owner;
  record.checkpoint.target = target;
  for (const SourceIdentity& source : record.key.sources)
    record.checkpoint.files.push_back({path_of_source(target, source.name), source.file.size_bytes});
  for (RecordedNote& note : notes)
    record.checkpoint.notes.push_back(from_recorded(std::move(note), record.checkpoint, target));
  return record;
}

}  // namespace ballast
