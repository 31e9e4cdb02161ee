#include "model_document.hpp"

#include <map>
#include <string_view>
#include <utility>

#include <ballast/listing.hpp>
#include <ballast/remote.hpp>

#include "../json_writer.hpp"
#include "../place.hpp"

namespace ballast::cli {
namespace {

using Layout = JsonWriter::Layout;

// A column of values that repeat: each of them once, and a number for each tensor.
template <class Value>
class Repeated {
 public:
  void add(Value value) {
    const auto [found, is_new] = places_.try_emplace(std::move(value), places_.size());
    if (is_new) values_.push_back(&found->first);
    numbers_.push_back(found->second);
  }
  const std::vector<const Value*>& values() const { return values_; }
  const std::vector<std::size_t>& numbers() const { return numbers_; }

 private:
  std::map<Value, std::size_t> places_;
  std::vector<const Value*> values_;
  std::vector<std::size_t> numbers_;
};

struct Columns {
  Repeated<std::string> dtypes, files;
  Repeated<std::vector<std::uint64_t>> shapes;
  std::vector<std::int64_t> offsets;  // -1 where the bytes are compressed, computed or not in a row
};

Columns columns_of(const Checkpoint& checkpoint) {
  Columns columns;
  Places places(checkpoint);
  for (std::size_t i = 0; i < checkpoint.size(); ++i) {
    const Tensor& tensor = checkpoint.tensors[i].tensor;
    const TensorDescription description = describe_tensor(checkpoint, i);
    const auto place = places.of(tensor);
    columns.dtypes.add(description.dtype);
    columns.shapes.add({description.shape.begin(), description.shape.end()});
    columns.files.add(place ? std::string(place->file) : "");
    columns.offsets.push_back(place && place->offset ? static_cast<std::int64_t>(*place->offset) : -1);
  }
  return columns;
}

// What is unusual about a few tensors: by number, so that the others cost nothing.
void write_oddities(JsonWriter& json, const Checkpoint& checkpoint) {
  std::map<std::string_view, std::string_view> layouts;
  for (const Composite& composite : checkpoint.composites) {
    for (const std::string& part : composite.parts) layouts.emplace(part, composite.layout);
  }
  json.key("odd");
  json.begin_object(Layout::lines);
  for (std::size_t i = 0; i < checkpoint.size(); ++i) {
    const auto& [name, tensor] = checkpoint.tensors[i];
    const auto layout = layouts.find(name);
    const auto alias = checkpoint.aliases.find(name);
    const bool is_packed = checkpoint.quantization && checkpoint.quantization->parts.contains(name);
    if (layout == layouts.end() && alias == checkpoint.aliases.end() && tensor.is_contiguous() && tensor.has_data() &&
        !is_packed)
      continue;
    json.key(std::string_view(std::to_string(i)));
    json.begin_object();
    if (layout != layouts.end()) json.field("layout", layout->second);
    if (alias != checkpoint.aliases.end()) json.field("alias_of", alias->second);
    if (!tensor.is_contiguous()) json.array_field("strides", tensor.strides());
    if (!tensor.has_data()) json.field("data", false);
    if (is_packed) json.field("packed", true);
    json.end();
  }
  json.end();
}

// How weights are kept, if the tensors are not weights but what these are packed in; or how they were.
void write_how_kept(JsonWriter& json, const Checkpoint& checkpoint) {
  json.key("quantization");
  if (!checkpoint.quantization) {
    json.value(nullptr);
  } else {
    const Quantization& quantization = *checkpoint.quantization;
    json.begin_object();
    json.field("scheme", quantization.scheme);
    if (quantization.bits) json.field("bits", *quantization.bits);
    if (quantization.group_size) json.field("group_size", *quantization.group_size);
    json.field("modules", quantization.modules);
    json.field("parts", std::uint64_t{quantization.parts.size()});
    json.end();
  }
  if (!checkpoint.dequantized.empty()) json.field("dequantized", checkpoint.dequantized);
}

template <class Write>
void list_field(JsonWriter& json, std::string_view key, std::size_t count, Write write) {
  json.key(key);
  json.begin_array();
  for (std::size_t i = 0; i < count; ++i) write(i);
  json.end();
}

void write_side(JsonWriter& json, const std::string& target, const Checkpoint& checkpoint) {
  const Columns columns = columns_of(checkpoint);
  json.begin_object(Layout::lines);
  json.field("target", target);
  json.field("format", name(checkpoint.format));
  json.field("remote", is_remote(target));
  write_how_kept(json, checkpoint);
  write_files(json, checkpoint);
  list_field(json, "names", checkpoint.size(), [&](std::size_t i) { json.value(checkpoint.tensors[i].name); });
  list_field(json, "dtypes", columns.dtypes.values().size(),
             [&](std::size_t i) { json.value(*columns.dtypes.values()[i]); });
  json.array_field("dtype", columns.dtypes.numbers());
  list_field(json, "shapes", columns.shapes.values().size(), [&](std::size_t i) {
    json.begin_array();
    for (const std::uint64_t dimension : *columns.shapes.values()[i]) json.value(dimension);
    json.end();
  });
  json.array_field("shape", columns.shapes.numbers());
  list_field(json, "bytes", checkpoint.size(),
             [&](std::size_t i) { json.value(checkpoint.tensors[i].tensor.nbytes()); });
  list_field(json, "in_files", columns.files.values().size(),
             [&](std::size_t i) { json.value(*columns.files.values()[i]); });
  json.array_field("in_file", columns.files.numbers());
  json.array_field("offset", columns.offsets);
  write_oddities(json, checkpoint);
  json.end();
}

}  // namespace

std::string model_document(const Session& session, const Subject& subject, PageKind kind) {
  std::string text;
  Output out(&text);
  JsonWriter json(out, "ballast.view/1");
  json.field("version", BALLAST_VERSION);
  json.field("served", kind == PageKind::served);
  json.field("root", session.root);
  json.field("dequantize", session.dequantize);
  subject.view.empty() ? json.field("view", nullptr) : json.field("view", subject.view);
  json.field("adapter", subject.adapter.has_value());
  subject.base ? json.field("base", subject.base->target) : json.field("base", nullptr);
  json.key("sides");
  json.begin_array(Layout::lines);
  for (std::size_t i = 0; i < subject.sides.size(); ++i) write_side(json, subject.targets[i], subject.sides[i]);
  json.end();
  json.finish();
  out.flush();
  return text;
}

}  // namespace ballast::cli
