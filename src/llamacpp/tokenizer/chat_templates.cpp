#include "llamacpp/tokenizer/chat_templates.hpp"

#include <utility>

#include <fmt/format.h>

#include "core/name_hash.hpp"

namespace ballast::llamacpp {
namespace {

constexpr std::string_view kJinja = ".jinja";
constexpr std::size_t kMostFiles = 64;

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

void add_files(ChatTemplates& templates, const ModelFolder& folder, std::vector<Note>& notes) {
  const std::string inner = "additional_chat_templates";
  auto names = folder.list(inner);
  std::erase_if(names, [](const std::string& name) { return !name.ends_with(kJinja); });
  if (names.size() > kMostFiles)
    throw Error(Errc::limit, fmt::format("there are {} chat templates; {} are the most", names.size(), kMostFiles))
        .in(folder.path(inner));
  for (const std::string& name : names)
    if (auto text = read_template_file(folder, inner + "/" + name, notes))
      add_named(templates, name.substr(0, name.size() - kJinja.size()), std::move(*text));
}

ChatTemplates from_files(const TokenizerFiles& files, std::vector<Note>& notes) {
  ChatTemplates templates;
  if (auto text = read_template_file(files.folder(), "chat_template.jinja", notes)) {
    templates.plain = std::move(*text);
    add_files(templates, files.folder(), notes);
    return templates;
  }
  const auto json = files.json("chat_template.json");
  const Json* value = json ? json->find("chat_template") : nullptr;
  return value ? from_json(*value) : templates;
}

}  // namespace

std::optional<std::string> read_template_file(const ModelFolder& folder, const std::string& file,
                                              std::vector<Note>& notes) {
  auto text = folder.text(file);
  if (!text) return std::nullopt;
  if (folder.leads_out(file)) notes.push_back({folder.path(file), "the chat template is a link to another folder"});
  return with_plain_newlines(std::move(*text));
}

ChatTemplates read_chat_templates(const TokenizerFiles& files, std::vector<Note>& notes) {
  if (const Json* value = files.setting("chat_template")) return from_json(*value);
  return from_files(files, notes);
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
