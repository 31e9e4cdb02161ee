// Protobufs have no magic. The numbers and kinds of the first fields tell what a protobuf is.
//
//   a message    fields, one after the other
//   a field      varint number * 8 + kind, then its value: kind 0 a varint, 1 eight bytes, 2 a size and as many bytes,
//                5 four bytes
#include <algorithm>
#include <array>
#include <vector>

#include "checkpoint/recognize/foreign_shapes.hpp"
#include "core/checked.hpp"

namespace ballast::foreign {
namespace {

enum class Kind : std::uint8_t { varint = 0, eight_bytes = 1, bytes = 2, four_bytes = 5 };

struct ProtoField {
  std::uint64_t number = 0;
  Kind kind = Kind::varint;
  std::uint64_t value = 0;            // of a varint
  std::uint64_t first = 0, last = 0;  // where the bytes of a value lie; they may reach past the end of a cut file
  bool is(std::uint64_t wanted, Kind of) const { return number == wanted && kind == of; }
};

struct ProtoFields {
  std::vector<ProtoField> fields;
  bool is_whole = false;   // the fields end where the message ends
  bool is_broken = false;  // something in it is not a field
};

std::optional<std::uint64_t> take_varint(std::span<const std::byte>& rest) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64 && !rest.empty(); shift += 7) {
    const auto byte = std::to_integer<std::uint64_t>(rest.front());
    rest = rest.subspan(1);
    value |= (byte & 0x7f) << shift;
    if ((byte & 0x80) == 0) return value;
  }
  return std::nullopt;
}

std::optional<ProtoField> read_field(const Source& source, std::uint64_t at, std::uint64_t end) {
  std::array<std::byte, 20> buffer;  // two varints
  const auto head = std::span(buffer).first(static_cast<std::size_t>(std::min<std::uint64_t>(end - at, buffer.size())));
  source.read(at, head);
  std::span<const std::byte> rest = head;
  const auto key = take_varint(rest);
  if (!key || *key >> 3 == 0 || *key >> 3 > 0x1fffffff) return std::nullopt;
  ProtoField field{*key >> 3, static_cast<Kind>(*key & 7)};
  std::uint64_t size = 0;
  switch (field.kind) {
    case Kind::eight_bytes: size = 8; break;
    case Kind::four_bytes: size = 4; break;
    case Kind::varint:
    case Kind::bytes:
      if (const auto number = take_varint(rest)) {
        field.value = field.kind == Kind::varint ? *number : 0;
        size = field.kind == Kind::varint ? 0 : *number;
        break;
      }
      return std::nullopt;
    default: return std::nullopt;
  }
  field.first = at + (head.size() - rest.size());
  const auto last = checked_add(field.first, size);
  if (!last) return std::nullopt;
  field.last = *last;
  return field;
}

ProtoFields first_fields(const Source& source, std::uint64_t at, std::uint64_t end) {
  constexpr std::size_t kEnough = 64;
  ProtoFields found;
  while (at < end && found.fields.size() < kEnough) {
    const auto field = read_field(source, at, end);
    found.is_broken = !field;
    if (!field) return found;
    found.fields.push_back(*field);
    at = field->last;
  }
  found.is_whole = at == end;
  return found;
}

ProtoFields inside(const Source& source, const ProtoField& field) {
  return first_fields(source, field.first, std::min(field.last, source.size_bytes()));
}

bool is_word(const Source& source, const ProtoField& field) {
  std::array<char, 64> buffer;
  const std::uint64_t size = field.last - field.first;
  if (size == 0 || field.last > source.size_bytes()) return false;
  const auto word = std::span(buffer).first(static_cast<std::size_t>(std::min<std::uint64_t>(size, buffer.size())));
  source.read(field.first, std::as_writable_bytes(word));
  return std::all_of(word.begin(), word.end(), [](char c) { return c >= ' ' && c < 0x7f; });
}

// Fields: 1: the version of the format, 2: the producer's name, 7: the graph, 8: the operators' versions; none beyond
// 26.
bool is_onnx(const ProtoFields& found) {
  const auto has = [&](std::uint64_t number, Kind kind) {
    return std::any_of(found.fields.begin(), found.fields.end(), [&](auto& field) { return field.is(number, kind); });
  };
  const bool is_small = std::all_of(found.fields.begin(), found.fields.end(), [](auto& f) { return f.number <= 26; });
  return is_small && has(1, Kind::varint) && (has(7, Kind::bytes) || has(8, Kind::bytes));
}

// Fields: 1: the version of the format, 2: a description; the model itself is one of many fields from 200 on.
bool is_core_ml(const ProtoFields& found) {
  const auto is_model = [](const ProtoField& field) {
    return field.number >= 200 && field.number <= 3000 && field.kind == Kind::bytes;
  };
  return found.fields[0].is(1, Kind::varint) && std::any_of(found.fields.begin(), found.fields.end(), is_model);
}

// Fields: 1: the version of the format, which is 1; 2: graphs.
bool is_saved_model(const ProtoFields& found) {
  const auto is_graph = [](const ProtoField& field) { return field.is(2, Kind::bytes); };
  return found.fields.size() > 1 && found.fields[0].is(1, Kind::varint) && found.fields[0].value == 1 &&
         std::all_of(found.fields.begin() + 1, found.fields.end(), is_graph);
}

// Fields: 1: nodes, each with 1: a name and 2: an operation.
bool is_graph(const Source& source, const ProtoFields& found) {
  if (!found.fields[0].is(1, Kind::bytes)) return false;
  const ProtoFields node = inside(source, found.fields[0]);
  return node.fields.size() > 1 && node.fields[0].is(1, Kind::bytes) && node.fields[1].is(2, Kind::bytes) &&
         is_word(source, node.fields[0]) && is_word(source, node.fields[1]);
}

// Fields: 1: pieces, each with 1: a text and 2: a score.
bool is_sentence_piece(const Source& source, const ProtoFields& found) {
  if (!found.fields[0].is(1, Kind::bytes)) return false;
  const ProtoFields piece = inside(source, found.fields[0]);
  return piece.fields.size() > 1 && piece.fields[0].is(1, Kind::bytes) && piece.fields[1].is(2, Kind::four_bytes);
}

// Fields: 1: a name, 100: layers.
bool is_caffe(const ProtoFields& found) {
  return std::any_of(found.fields.begin(), found.fields.end(), [](auto& field) { return field.is(100, Kind::bytes); });
}

}  // namespace

std::optional<ForeignFormat> protobuf(const FileLook& look) {
  const ProtoFields found = first_fields(look.source, 0, look.source.size_bytes());
  if (found.is_broken || found.fields.empty()) return std::nullopt;
  // Two numbers can look like two fields by chance, if nothing confirms that they end where they should.
  if (found.fields.back().last > look.source.size_bytes() && found.fields.size() < 3) return std::nullopt;
  if (is_core_ml(found)) return ForeignFormat{"a CoreML model, by its first fields", kExport};
  if (is_onnx(found)) return ForeignFormat{"an ONNX model, by its first fields", kExport};
  if (is_saved_model(found)) return ForeignFormat{"a TensorFlow SavedModel, by its first fields", kExport};
  if (is_sentence_piece(look.source, found))
    return ForeignFormat{"a SentencePiece tokenizer, by its first fields", kOther};
  if (is_graph(look.source, found)) return ForeignFormat{"a TensorFlow graph, by its first fields", kExport};
  if (is_caffe(found)) return ForeignFormat{"a Caffe model, by its first fields", kExport};
  // Other protobufs count only if they surely are protobufs.
  if (!found.is_whole || found.fields.size() < 3) return std::nullopt;
  return ForeignFormat{"a protobuf of a kind that Ballast does not know", kExport};
}

}  // namespace ballast::foreign
