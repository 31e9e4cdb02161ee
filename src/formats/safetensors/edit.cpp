#include "formats/safetensors/edit.hpp"

#include <ballast/error.hpp>
#include <ballast/metadata_text.hpp>

#include <string>

#include "core/text.hpp"
#include "formats/safetensors/encode.hpp"
#include "formats/safetensors/reader.hpp"
#include "tensor/source_storage.hpp"

namespace ballast::safetensors {

EditableHeader read_editable(const SourcePtr& source, const Limits& limits) {
  EditableHeader editable;
  editable.text = read_header_text(*source, limits);
  editable.data_begin = kLengthBytes + editable.text->view().size();
  const std::uint64_t data_bytes = source->size_bytes() - editable.data_begin;
  Header header = parse_header(editable.text, source_storage(source, editable.data_begin, data_bytes), limits);
  editable.metadata = std::move(header.metadata);
  editable.metadata_text = header.metadata_text;
  return editable;
}

std::vector<std::byte> with_metadata(const EditableHeader& header, const Metadata& metadata, const Limits& limits) {
  const std::string_view old = header.text->view();
  const TextRange& range = header.metadata_text;
  std::string text(old.substr(0, range.begin));
  append_metadata(text, metadata);
  std::string_view rest = old.substr(range.end);
  if (range.begin == range.end) {
    // There was no metadata: the new metadata goes behind the opening brace.
    const auto brace = old.find('{');
    rest = old.substr(brace + 1);
    text.assign(old.substr(0, brace + 1));
    append_metadata(text, metadata);
    const auto next = rest.find_first_not_of(" \t\r\n");
    if (rest[next] != '}') text += ',';
  }
  text += rest;
  text.erase(text.find_last_not_of(" \t\r\n") + 1);
  return frame_header(text, old.size(), limits);
}

namespace {

// The key without the type that may stand behind it. A key that has an equals sign in it is no word that somebody
// typed.
std::string key_of_text(const std::string& key) try {
  if (key.find(':') == std::string::npos || key.find('=') != std::string::npos) return key;
  return parse_text_assignment(key + "=").key;
} catch (Error& error) {
  throw error.hint("leave the type out: " + key.substr(0, key.rfind(':')) + "=VALUE");
}

}  // namespace

EditedHead edit(const SourcePtr& source, const MetadataEdit& edit, const Limits& limits) {
  const EditableHeader header = read_editable(source, limits);
  Metadata metadata = header.metadata;
  for (const std::string& key : edit.unset) {
    if (metadata.erase(key) == 0) throw Error(Errc::not_found, "the metadata has no " + quote(key)).about(key);
  }
  for (const auto& [key, value] : edit.set) metadata.insert_or_assign(key_of_text(key), value);
  if (metadata == header.metadata) return {};
  return {true, header.metadata, metadata, header.data_begin, with_metadata(header, metadata, limits)};
}

}  // namespace ballast::safetensors
