#include "llamacpp/tokenizer/chat_templates.hpp"

#include <utility>

#include "core/name_hash.hpp"

namespace ballast::llamacpp {
namespace {

constexpr std::string_view kJinja = ".jinja";

bool is_alphanumeric(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// Every other character of a name becomes one underscore.
std::string safe_name(std::string_view name) {
  std::string safe;
  for (const char c : name)
    if ((static_cast<unsigned char>(c) & 0xC0) != 0x80) safe += is_alphanumeric(c) ? c : '_';
  return safe;
}

void add_named(ChatTemplates& templates, std::string_view name, std::string text) {
  std::string safe = safe_name(name);
  if (safe == "default")
    templates.plain = std::move(text);
  else if (!safe.empty())
    templates.named.emplace_back(std::move(safe), std::move(text));
}

// A text, or a list of { name, template }.
ChatTemplates from_json(const Json& value) {
  ChatTemplates templates;
  if (value.is_text()) templates.plain = value.text();
  if (!value.is_list()) return templates;
  for (const Json& choice : value.list()) {
    const Json* text = choice.find("template");
    if (text && text->is_text()) add_named(templates, token_text(choice.find("name")), text->text());
  }
  return templates;
}

ChatTemplates from_files(const TokenizerFiles& files) {
  const ModelFolder& folder = files.folder();
  ChatTemplates templates;
  if (auto text = folder.text("chat_template.jinja")) {
    templates.plain = with_plain_newlines(std::move(*text));
    for (const std::string& file : folder.list("additional_chat_templates")) {
      if (!file.ends_with(kJinja)) continue;
      const auto inner = folder.text("additional_chat_templates/" + file);
      if (inner) add_named(templates, file.substr(0, file.size() - kJinja.size()), with_plain_newlines(*inner));
    }
    return templates;
  }
  const auto json = files.json("chat_template.json");
  const Json* value = json ? json->find("chat_template") : nullptr;
  return value ? from_json(*value) : templates;
}

}  // namespace

ChatTemplates read_chat_templates(const TokenizerFiles& files) {
  if (const Json* value = files.setting("chat_template")) return from_json(*value);
  return from_files(files);
}

void ChatTemplates::write(TypedMetadata& out) const {
  std::vector<std::string> names;
  NameViewMap<bool> seen;
  for (const auto& [name, text] : named) {
    if (seen.emplace(name, true).second) names.push_back(name);
    if (!text.empty()) out.set(MetadataEntry::of("tokenizer.chat_template." + name, text));
  }
  if (!names.empty()) out.set(MetadataEntry::strings("tokenizer.chat_templates", names));
  if (!plain.empty()) out.set(MetadataEntry::of("tokenizer.chat_template", plain));
}

}  // namespace ballast::llamacpp
