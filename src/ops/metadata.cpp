#include <ballast/error.hpp>
#include <ballast/metadata.hpp>

#include <utility>

#include "checkpoint/detect.hpp"
#include "core/text.hpp"
#include "formats/gguf/layout.hpp"
#include "formats/gguf/reader.hpp"
#include "formats/safetensors/edit.hpp"
#include "io/byte_source.hpp"
#include "io/patch_file.hpp"
#include "save/plan.hpp"
#include "tensor/source_storage.hpp"

namespace ballast {
namespace {

Metadata edited(Metadata metadata, const MetadataEdit& edit) {
  for (const std::string& key : edit.unset) {
    if (metadata.erase(key) == 0) throw Error(Errc::not_found, "the metadata has no " + quote(key));
  }
  for (const auto& [key, value] : edit.set) metadata.insert_or_assign(key, value);
  return metadata;
}

// The data as they lie, behind another header.
void rewrite(const io::ByteSourcePtr& source, std::uint64_t data_begin, std::vector<std::byte> head,
             SaveOptions options) {
  const std::uint64_t size = source->size_bytes() - data_begin;
  const std::uint64_t begin = head.size();
  SavePlan plan;
  Tensor data(DType::u8, {size}, source_storage(source, data_begin, size));
  plan.files.push_back({source->name(), std::move(head), {{"", std::move(data), begin}}, begin + size});
  plan.data_bytes = size;
  options.overwrite = true;
  execute(plan, options);
}

Fields edited(Fields fields, const MetadataEdit& edit) {
  for (const std::string& key : edit.unset) {
    if (!fields.remove(key)) throw Error(Errc::not_found, "the metadata has no " + quote(key));
  }
  for (const auto& [key, value] : edit.set) {
    const FieldAssignment field = parse_field_assignment(key + "=" + value);
    fields.set_from_text(field.key, field.text, field.type);
  }
  return fields;
}

MetadataEditReport edit_gguf(const io::ByteSourcePtr& source, const MetadataEdit& edit, SaveOptions options) {
  gguf::GgufFile file = gguf::read(source, {options.limits});
  const Fields fields = edited(file.fields, edit);
  if (fields == file.fields) return {.changed = false, .in_place = true};
  if (file.is_big_endian || file.version < 3) {
    throw Error(Errc::unsupported, "a GGUF file of an old version or of the other byte order cannot be edited")
        .hint("convert it first: ballast convert IN.gguf OUT.gguf");
  }
  std::vector<const StateDict::Entry*> entries;
  for (const auto& entry : file.checkpoint) entries.push_back(&entry);
  const gguf::Layout layout = gguf::lay_out(entries, fields, file.unknown_types, options.limits);
  const bool in_place = layout.head.size() == file.data_offset && layout.size_bytes == source->size_bytes() &&
                        io::has_one_name(source->name());
  if (in_place) {
    io::patch_file(source->name(), 0, layout.head, options.durable);
  } else {
    file.checkpoint.fields = fields;
    file.checkpoint.unknown_ggml = file.unknown_types;
    options.overwrite = true;
    execute(plan_gguf(file.checkpoint, source->name(), options), options);
  }
  return {.changed = true, .in_place = in_place};
}

}  // namespace

MetadataEditReport edit_metadata(const std::string& path, const MetadataEdit& edit, const SaveOptions& options) try {
  const auto source = io::open_file(path);
  if (detect(*source) == Content::json) {
    throw Error(Errc::unsupported, "an index of shards has no metadata of safetensors")
        .hint("edit the shards themselves");
  }
  if (detect(*source) == Content::gguf) return edit_gguf(source, edit, options);
  const safetensors::EditableHeader header = safetensors::read_editable(source, options.limits);
  const Metadata metadata = edited(header.metadata, edit);
  if (metadata == header.metadata) return {.changed = false, .in_place = true};

  std::vector<std::byte> head = safetensors::with_metadata(header, metadata, options.limits);
  // A link, or a file with a second name, may be somebody else's too: those get a file of their own.
  const bool in_place = head.size() == header.data_begin && io::has_one_name(path);
  if (in_place) {
    io::patch_file(path, 0, head, options.durable);
  } else {
    rewrite(source, header.data_begin, std::move(head), options);
  }
  return {.changed = true, .in_place = in_place};
} catch (Error& error) {
  throw error.in(path);
}

}  // namespace ballast
