#include "texts.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>
#include <ballast/error.hpp>
#include <ballast/sidecars.hpp>
#include <ballast/typed_metadata.hpp>

#include "../json_writer.hpp"

namespace ballast::cli {
namespace {

constexpr std::uint64_t kMostItems = 200;  // of an array in metadata

constexpr std::array<std::string_view, 8> kTextEndings = {".json",       ".jinja", ".md",  ".txt",
                                                          ".model_card", ".yaml",  ".yml", ".py"};

bool is_text(std::string_view name) {
  return name == "LICENSE" || name == "NOTICE" ||
         std::ranges::any_of(kTextEndings, [&](std::string_view ending) { return name.ends_with(ending); });
}

// What is left of the beginning of a text without the half of a character at its end.
std::string_view whole_characters(std::string_view text) {
  const auto byte = [&] { return static_cast<unsigned char>(text.back()); };
  while (!text.empty() && (byte() & 0xC0) == 0x80) text.remove_suffix(1);
  if (!text.empty() && byte() >= 0xC0) text.remove_suffix(1);
  return text;
}

void write_text(JsonWriter& json, std::string_view name, std::string_view text, std::uint64_t whole_bytes) {
  const bool is_cut = text.size() < whole_bytes;
  json.begin_object();
  json.field("name", name);
  json.field("text", is_cut ? whole_characters(text) : text);
  json.field("bytes", whole_bytes);
  if (is_cut) json.field("cut", true);
  json.end();
}

void write_sidecar(JsonWriter& json, const Sidecar& file, std::uint64_t most_bytes) {
  const std::uint64_t size = file.source->size_bytes();
  std::string text(std::min(size, most_bytes), '\0');
  file.source->read(0, std::as_writable_bytes(std::span(text)));
  write_text(json, file.name, text, size);
}

}  // namespace

std::string texts_document(const Session& session, const Subject& subject, std::size_t side, std::uint64_t most_bytes) {
  const Checkpoint& checkpoint = subject.originals[side];
  std::string text;
  Output out(&text);
  JsonWriter json(out, "ballast.view.texts/1");
  json.key("files");
  json.begin_array(JsonWriter::Layout::lines);
  for (const Sidecar& file : find_sidecars(checkpoint, session.open_options()).files) {
    if (is_text(file.name)) write_sidecar(json, file, most_bytes);
  }
  json.end();
  // Arrays of a GGUF, and its texts as they are: `info` shortens the first.
  json.key("fields");
  json.begin_array(JsonWriter::Layout::lines);
  for (const MetadataEntry& field : checkpoint.typed_metadata) {
    json.begin_object();
    json.field("key", field.key);
    json.field("type",
               field.is_array() ? fmt::format("array of {}", name(field.element_type)) : std::string(name(field.type)));
    json.field("count", field.count);
    json.field("value", ballast::text(field, kMostItems));
    json.end();
  }
  json.end();
  json.finish();
  out.flush();
  return text;
}

}  // namespace ballast::cli
