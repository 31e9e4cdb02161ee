// GGUF files. Whatever the bytes are, they give fields that can be walked and tensors that lie inside the file, or an
// Error. A file that was read can be written by the rules, and then reads the same.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <ballast/error.hpp>

#include "../tests/gguf/second_reader.hpp"
#include "formats/gguf/edit.hpp"
#include "formats/gguf/layout.hpp"
#include "formats/gguf/reader.hpp"
#include "tensor/decoded_storage.hpp"

namespace {

using namespace ballast;

void require(bool condition, const char* what, const std::string& why = {}) {
  if (condition) return;
  std::fprintf(stderr, "%s %s\n", what, why.c_str());
  std::abort();
}

void check_fields(const TypedMetadata& fields) {
  for (const MetadataEntry& field : fields) {
    require(fields.find(field.key) == &field, "a key that does not lead to its field");
    require(!field.key.empty(), "an empty key");
    std::uint64_t count = 0;
    for (auto item = field.items().begin(); item != std::default_sentinel; ++item) ++count;
    const bool has_items = field.is_array() && field.element_type != MetadataType::array;
    require(count == (has_items ? field.count : 0), "an array with another number of elements");
    require(field.is_array() || field.type == MetadataType::string || field.bytes.size() == width(field.type),
            "a value of another size");
    text(field, 3);
  }
}

std::string read_all(const Tensor& tensor) {
  std::string bytes(tensor.nbytes(), '\0');
  tensor.read(0, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

void check_tensors(const gguf::GgufFile& file, std::uint64_t size) {
  std::set<std::string_view> names;
  for (const auto& [name, tensor] : file.checkpoint) {
    require(names.insert(name).second, "a name twice");
    require(tensor.nbytes() <= size, "a tensor larger than the file");
    read_all(tensor);
    if (info(tensor.dtype()).kind != DTypeKind::ggml || tensor.nbytes() == 0) continue;
    const Tensor values = decoded(tensor, DType::f32);
    std::byte last;
    values.read(values.nbytes() - 1, {&last, 1});
  }
}

std::string assemble(const SavePlan::File& layout) {
  std::string file(layout.size_bytes, '\0');
  std::copy_n(reinterpret_cast<const char*>(layout.head.data()), layout.head.size(), file.begin());
  for (const auto& item : layout.items) {
    const std::string bytes = read_all(item.tensor);
    std::copy(bytes.begin(), bytes.end(), file.begin() + static_cast<std::ptrdiff_t>(item.offset));
  }
  return file;
}

SourcePtr source_of(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return memory_source({bytes.begin(), bytes.end()});
}

// Writes the file that was read, and reads it again. Only long names can be read and not written.
void check_round_trip(const gguf::GgufFile& file) {
  std::vector<const StateDict::Entry*> entries;
  for (const auto& entry : file.checkpoint) {
    if (entry.name.size() > 63) return;
    entries.push_back(&entry);
  }
  const std::string written = assemble(gguf::lay_out(entries, file.fields, file.unknown_types));
  const gguf::GgufFile again = gguf::read(source_of(written));
  require(again.fields == file.fields, "other fields after a round trip");
  require(again.checkpoint.size() == file.checkpoint.size(), "other tensors after a round trip");
  for (const auto& [name, tensor] : file.checkpoint) {
    const Tensor& other = again.checkpoint.at(name);
    require(other.dtype() == tensor.dtype(), "another type after a round trip");
    // A tensor of an unknown type includes the padding behind it.
    require(read_all(other).starts_with(read_all(tensor)), "other bytes after a round trip");
  }
  if (!file.unknown_types.empty()) return;
  try {
    require(test::SecondReader(written).tensors.size() == entries.size(), "other tensors for the second reader");
  } catch (const std::exception& error) {
    require(false, error.what());
  }
}

void check_error(const Error& error, std::uint64_t size) {
  require(error.code() == Errc::malformed || error.code() == Errc::unsupported || error.code() == Errc::limit,
          "an odd kind of error", error.what());
  require(error.offset() && *error.offset() <= size, "a byte outside of the file", error.what());
  require(!error.message().empty() && error.message().size() < 2000, "a message that nobody would read", error.what());
}

void read_and_check(const SourcePtr& source, const gguf::ReadOptions& options) {
  try {
    const gguf::GgufFile file = gguf::read(source, options);
    check_fields(file.fields);
    check_tensors(file, source->size_bytes());
    check_round_trip(file);
  } catch (const Error& error) {
    check_error(error, source->size_bytes());
  }
}

void edit_and_check(const SourcePtr& source, const Limits& limits) {
  try {
    const gguf::EditableHeader header = gguf::read_editable(*source, limits);
    const auto head = gguf::with_fields(header, header.fields, limits);
    std::vector<std::byte> before(std::min<std::size_t>(head.size(), header.data_begin));
    source->read(0, before);
    const std::size_t padding = header.alignment;  // padding may hold any bytes
    require(std::equal(before.begin(), before.end() - static_cast<std::ptrdiff_t>(std::min(padding, before.size())),
                       head.begin()),
            "an edit of nothing that changes something");
  } catch (const Error& error) {
    require(error.code() != Errc::invalid_argument, "an odd kind of error", error.what());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto* first = reinterpret_cast<const std::byte*>(data);
  const auto source = memory_source({first, first + size});
  gguf::ReadOptions options;
  options.limits.max_header_bytes = 1 << 20;
  options.limits.max_metadata_keys = 1000;
  options.limits.max_tensors = 1000;
  options.limits.max_expansion_bytes = 1 << 20;
  read_and_check(source, options);
  options.lenient = true;
  options.block_order = gguf::BlockOrder::as_is;
  read_and_check(source, options);
  edit_and_check(source, options.limits);
  return 0;
}
