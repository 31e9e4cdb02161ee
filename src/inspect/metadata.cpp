#include <ballast/error.hpp>
#include <ballast/metadata.hpp>
#include <ballast/open.hpp>
#include <ballast/remote.hpp>
#include <ballast/source.hpp>

#include <algorithm>
#include <utility>

#include "checkpoint/recognize/detect.hpp"
#include "core/remedy.hpp"
#include "core/text.hpp"
#include "formats/all.hpp"
#include "io/patch_file.hpp"
#include "io/section.hpp"
#include "tensor/source_storage.hpp"

namespace ballast {
namespace {

// Writes the same data behind another header.
void rewrite(const SourcePtr& source, std::uint64_t data_begin, std::vector<std::byte> head, SaveOptions options) {
  const std::uint64_t size = source->size_bytes() - data_begin;
  const std::uint64_t begin = head.size();
  SavePlan plan;
  Tensor data(DType::u8, {size}, source_storage(source, data_begin, size));
  plan.files.push_back({source->name(), std::move(head), {{"", std::move(data), begin}}, begin + size});
  plan.data_bytes = size;
  options.overwrite = true;
  execute(plan, options);
}

// Writes a new header; the data behind it do not change.
MetadataEditReport replace_head(const SourcePtr& source, std::uint64_t data_begin, std::vector<std::byte> head,
                                const SaveOptions& options) {
  // A link, or a file with a second name, may belong to somebody else too: then a new file is written under this name.
  const bool in_place = head.size() == data_begin && io::has_one_name(source->name());
  if (in_place) {
    io::patch_file(*source, head, options.durable);
  } else {
    rewrite(source, data_begin, std::move(head), options);
  }
  return {.changed = true, .in_place = in_place};
}

// The metadata may be what makes a name a tensor: an alias, which says under which other name the bytes are kept.
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
          .hint("write the file anew, and leave the tensor out with " + mention(Remedy::exclude));
  }
}

bool can_be_edited(const FileFormat& format) { return format.edit != nullptr; }

}  // namespace

std::string read_metadata_text(const std::string& path, const Limits& limits) try {
  const auto text = io::read_text_file(path, limits.max_header_bytes);
  const std::size_t valid = valid_utf8_prefix(text->view());
  if (valid != text->view().size()) {
    throw Error(Errc::malformed, "the text is not UTF-8").at_byte(valid).hint("metadata are texts, and hold no bytes");
  }
  return std::string(text->view());
} catch (Error& error) {
  throw error.in(path);
}

MetadataEditReport edit_metadata(const std::string& path, const MetadataEdit& edit, const SaveOptions& options) try {
  if (is_remote(path)) {
    throw Error(Errc::unsupported, "only files of this machine can be edited")
        .hint("bring it here with " + mention(Remedy::fetch, path) + ", or convert it");
  }
  io::undo_cut_off_patch(path);
  const auto source = file_source(path);
  const Recognized recognized = recognize(source, options.limits);
  if (recognized.is_json()) {
    throw Error(Errc::unsupported, "an index of shards has no metadata of safetensors")
        .hint("edit the shards themselves");
  }
  if (!can_be_edited(*recognized.format)) {
    throw Error(Errc::unsupported,
                "only " + names_of_formats(can_be_edited, "and") + " files have metadata that can be edited")
        .hint("write it as safetensors, with " + mention(Remedy::metadata));
  }
  EditedHead edited = recognized.format->edit(source, edit, options.limits);
  if (!edited.is_changed) return {.changed = false, .in_place = true};
  if (recognized.format->keeps.agreements) refuse_aliases(path, edited.before, edited.after, options.limits);
  return replace_head(source, edited.data_begin, std::move(edited.head), options);
} catch (Error& error) {
  throw error.in(path);
}

}  // namespace ballast
