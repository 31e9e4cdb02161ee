#include <ballast/error.hpp>
#include <ballast/metadata.hpp>
#include <ballast/open.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "checkpoint/detect.hpp"
#include "core/text.hpp"
#include "formats/gguf/edit.hpp"
#include "formats/safetensors/edit.hpp"
#include "io/byte_source.hpp"
#include "io/patch_file.hpp"
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
    const FieldAssignment field = parse_field_assignment(fmt::format("{}={}", key, value));
    fields.set_from_text(field.key, field.text, field.type);
  }
  return fields;
}

// Both formats have a header that can be written anew and data behind it that stay as they are.
MetadataEditReport replace_head(const io::ByteSourcePtr& source, std::uint64_t data_begin, std::vector<std::byte> head,
                                const SaveOptions& options) {
  // A link, or a file with a second name, may be somebody else's too: those get a file of their own.
  const bool in_place = head.size() == data_begin && io::has_one_name(source->name());
  if (in_place) {
    io::patch_file(*source, head, options.durable);
  } else {
    rewrite(source, data_begin, std::move(head), options);
  }
  return {.changed = true, .in_place = in_place};
}

MetadataEditReport edit_gguf(const io::ByteSourcePtr& source, const MetadataEdit& edit, const SaveOptions& options) {
  const gguf::EditableHeader header = gguf::read_editable(*source, options.limits);
  const Fields fields = edited(header.fields, edit);
  if (fields == header.fields) return {.changed = false, .in_place = true};
  return replace_head(source, header.data_begin, gguf::with_fields(header, fields, options.limits), options);
}

// Metadata can be all that there is of a tensor: the name under which its bytes are kept.
void refuse_aliases(const std::string& path, const Metadata& before, const Metadata& after, const Limits& limits) {
  const auto is_changed = [&](const auto& entry) {
    const auto now = after.find(entry.first);
    return now == after.end() || now->second != entry.second;
  };
  if (std::ranges::none_of(before, is_changed)) return;
  for (const auto& [removed, kept] : open(path, {.limits = limits, .cache = Cache::ignore}).aliases) {
    const auto said = before.find(removed);
    if (said != before.end() && is_changed(*said))
      throw Error(Errc::invalid_argument, quote(removed) + " is a tensor: its metadata say that it is " + quote(kept))
          .hint("ballast convert IN OUT --exclude leaves a tensor out");
  }
}

MetadataEditReport edit_safetensors(const io::ByteSourcePtr& source, const MetadataEdit& edit,
                                    const SaveOptions& options) {
  const safetensors::EditableHeader header = safetensors::read_editable(source, options.limits);
  const Metadata metadata = edited(header.metadata, edit);
  if (metadata == header.metadata) return {.changed = false, .in_place = true};
  refuse_aliases(source->name(), header.metadata, metadata, options.limits);
  return replace_head(source, header.data_begin, safetensors::with_metadata(header, metadata, options.limits), options);
}

}  // namespace

MetadataEditReport edit_metadata(const std::string& path, const MetadataEdit& edit, const SaveOptions& options) try {
  io::undo_cut_off_patch(path);
  const auto source = io::open_file(path);
  switch (detect(*source)) {
    case Content::gguf: return edit_gguf(source, edit, options);
    case Content::safetensors: return edit_safetensors(source, edit, options);
    case Content::json:
      throw Error(Errc::unsupported, "an index of shards has no metadata of safetensors")
          .hint("edit the shards themselves");
    default: break;
  }
  throw Error(Errc::unsupported, "only safetensors and GGUF files have metadata that can be edited")
      .hint("convert it first: ballast convert IN OUT.safetensors --metadata KEY=VALUE");
} catch (Error& error) {
  throw error.in(path);
}

}  // namespace ballast
