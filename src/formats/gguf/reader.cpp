#include "formats/gguf/reader.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <ballast/error.hpp>

#include "core/checked.hpp"
#include "core/text.hpp"
#include "formats/gguf/header.hpp"
#include "formats/gguf/places.hpp"
#include "formats/gguf/split.hpp"
#include "formats/gguf/types.hpp"
#include "tensor/decoded_storage.hpp"
#include "tensor/doors.hpp"
#include "tensor/source_storage.hpp"

namespace ballast::gguf {
namespace {

std::uint64_t data_bytes_of(const Header& header, const Source& source) {
  return source.size_bytes() - std::min(header.data_offset, source.size_bytes());
}

class TensorMaker {
 public:
  TensorMaker(const Header& header, StoragePtr data, const ReadOptions& options)
      : data_(std::move(data)),
        is_big_endian_(header.order == std::endian::big),
        swaps_blocks_(options.block_order == BlockOrder::swapped) {}

  Tensor make(const TensorInfo& info, const Place& place) const {
    if (!place.dtype) return Doors::unchecked(DType::u8, Shape{place.size}, data_, place.offset);
    Tensor tensor = Doors::unchecked(*place.dtype, info.shape, data_, place.offset);
    if (place.size == 0 || !is_swapped(*place.dtype)) return tensor;
    return Doors::unchecked(*place.dtype, info.shape, swapped_storage(std::move(tensor)), 0);
  }

 private:
  bool is_swapped(DType dtype) const noexcept {
    const DTypeInfo& type = ballast::info(dtype);
    return is_big_endian_ && (type.kind == DTypeKind::ggml ? swaps_blocks_ : type.block_bytes > 1);
  }

  StoragePtr data_;
  bool is_big_endian_, swaps_blocks_;
};

StateDict make_tensors(const Header& header, const Places& places, const TensorMaker& maker) {
  std::vector<StateDict::Entry> entries;
  entries.reserve(header.tensors.size());
  for (std::size_t i = 0; i < header.tensors.size(); ++i)
    entries.emplace_back(header.tensors[i].name, maker.make(header.tensors[i], places.places[i]));
  StateDict tensors;
  Doors::keep_alive(tensors, header.text);
  if (const auto twice = Doors::adopt(tensors, std::move(entries))) {
    throw Error(Errc::malformed, "tensor " + quote(header.tensors[*twice].name) + " is there twice")
        .at_byte(header.tensors[*twice].position);
  }
  return tensors;
}

UnknownTypes unknown_types_of(const Header& header, const Places& places) {
  UnknownTypes unknown;
  for (std::size_t i = 0; i < header.tensors.size(); ++i) {
    const TensorInfo& tensor = header.tensors[i];
    if (!places.places[i].dtype) unknown.emplace(tensor.name, UnknownGgml{tensor.type, tensor.shape});
  }
  return unknown;
}

std::string and_more(std::uint64_t count) { return count == 0 ? "" : fmt::format("; so it is with {} more", count); }

// Collects what is worth saying about a file that can be read.
class Notes {
 public:
  Notes(const Header& header, const Places& places, const Source& source) : file_(source.name()) {
    for (const std::string& oddity : places.oddities) add(oddity);
    note_long_names(header);
    note_nested_arrays(header);
    note_trailing_bytes(header, places, source);
  }

  void note_unknown_types(const UnknownTypes& unknown) {
    if (unknown.empty()) return;
    const auto& [name, type] = *unknown.begin();
    add(fmt::format(
        "tensor {} has type {}, which is newer than this program: its bytes are there, but not its values{}",
        quote(name), unknown_type_name(type.id), and_more(unknown.size() - 1)));
  }

  void note_block_order(const Places& places, BlockOrder order) {
    const auto is_block = [](const Place& place) { return place.dtype && info(*place.dtype).kind == DTypeKind::ggml; };
    if (std::ranges::none_of(places.places, is_block)) return;
    add(fmt::format("a big-endian file does not say how its quantized blocks lie; they are taken to be {}",
                    order == BlockOrder::swapped ? "big-endian, as gguf_convert_endian writes them"
                                                 : "little-endian, as GGUFWriter leaves them"),
        Note::Kind::remark);
  }

  std::vector<Note> take() { return std::move(notes_); }

 private:
  void add(std::string text, Note::Kind kind = Note::Kind::oddity) { notes_.push_back({file_, std::move(text), kind}); }

  void note_long_names(const Header& header) {
    const auto is_long = [](const TensorInfo& tensor) { return tensor.name.size() > kMaxNameBytes; };
    const auto first = std::ranges::find_if(header.tensors, is_long);
    if (first == header.tensors.end()) return;
    const auto others = std::count_if(first + 1, header.tensors.end(), is_long);
    add(fmt::format("tensor {} has a name of {} bytes, and llama.cpp reads {}{}", quote(first->name),
                    first->name.size(), kMaxNameBytes, and_more(static_cast<std::uint64_t>(others))));
  }

  void note_nested_arrays(const Header& header) {
    const auto is_nested = [](const MetadataEntry& field) {
      return field.is_array() && field.element_type == MetadataType::array;
    };
    const auto first = std::ranges::find_if(header.fields, is_nested);
    if (first == header.fields.end()) return;
    add(fmt::format("key {} is an array of arrays; llama.cpp refuses such files", quote(first->key)));
  }

  void note_trailing_bytes(const Header& header, const Places& places, const Source& source) {
    const std::uint64_t bytes = data_bytes_of(header, source);
    if (bytes > places.end) add(fmt::format("{} bytes follow the last tensor; passed over", bytes - places.end));
  }

  const std::string& file_;
  std::vector<Note> notes_;
};

GgufFile read_file(const SourcePtr& source, const ReadOptions& options) {
  Header header = read_header(*source, options.limits);
  const std::uint64_t data_bytes = data_bytes_of(header, *source);
  const Places places = place_tensors(header, data_bytes, options);
  const StoragePtr data = source_storage(source, source->size_bytes() - data_bytes, data_bytes);

  GgufFile file;
  file.checkpoint.tensors = make_tensors(header, places, TensorMaker(header, data, options));
  file.unknown_types = unknown_types_of(header, places);
  file.version = header.version;
  file.is_big_endian = header.order == std::endian::big;
  file.alignment = header.alignment;
  file.data_offset = header.data_offset;
  file.split = split_of(header.fields);

  Notes notes(header, places, *source);
  notes.note_unknown_types(file.unknown_types);
  if (file.is_big_endian) notes.note_block_order(places, options.block_order);
  file.checkpoint.notes = notes.take();
  file.checkpoint.format = Format::gguf;
  file.checkpoint.target = source->name();
  file.checkpoint.files.push_back({source->name(), source->size_bytes(), source});
  file.fields = std::move(header.fields);
  return file;
}

}  // namespace

GgufFile read(const SourcePtr& source, const ReadOptions& options) try {
  return read_file(source, options);
} catch (Error& error) {
  const auto joining = error.code() == Errc::malformed ? raw_split_hint(source->name()) : std::nullopt;
  if (!joining) throw error.in(source->name());
  throw Error(Errc::unsupported, "this is a piece of a file that was cut into pieces: " + error.message())
      .in(source->name())
      .hint(*joining);
}

}  // namespace ballast::gguf
