#include "llamacpp/tokenizer/special_map.hpp"

#include <charconv>
#include <optional>

#include <fmt/format.h>

#include "core/name_hash.hpp"
#include "core/text.hpp"
#include "llamacpp/tokenizer/tokenizer_classes.hpp"

namespace ballast::llamacpp {
namespace {

// The members that tokenizer_config.json and special_tokens_map.json have in common.
class SpecialSettings {
 public:
  SpecialSettings(const Json* settings, const Json* overrides) : settings_(settings), overrides_(overrides) {}

  const Json* find(std::string_view key) const {
    const Json* found = overrides_ ? overrides_->find(key) : nullptr;
    return found || !settings_ ? found : settings_->find(key);
  }
  // Of both files, the settings first.
  std::vector<std::string> list(std::string_view key) const {
    std::vector<std::string> texts;
    for (const Json* from : {settings_, overrides_}) {
      const Json* found = from ? from->find(key) : nullptr;
      if (!found || !found->is_list()) continue;
      for (const Json& token : found->list()) texts.emplace_back(token_text(&token));
    }
    return texts;
  }

 private:
  const Json* settings_;
  const Json* overrides_;
};

SpecialText special_text(const SpecialSettings& settings, const TokenizerFiles& files, std::size_t which) {
  if (const Json* value = settings.find(kSpecialNames[which])) return {std::string(token_text(value))};
  const std::string_view by_class = tokenizer_class(files).special[which];
  if (!by_class.empty() || kSpecialNames[which] != "pad_token") return {std::string(by_class), false};
  const Json* padding = files.part("padding");
  return {std::string(token_text(padding ? padding->find("pad_token") : nullptr))};
}

std::vector<SpecialText> special_texts(const SpecialSettings& settings, const TokenizerFiles& files) {
  std::vector<SpecialText> special;
  NameMap<bool> seen;
  const auto add = [&](SpecialText text) {
    if (!text.text.empty() && seen.emplace(text.text, true).second) special.push_back(std::move(text));
  };
  for (std::size_t i = 0; i < kSpecialNames.size(); ++i) add(special_text(settings, files, i));
  for (std::string& text : settings.list("additional_special_tokens")) add({std::move(text)});
  const Json* extra = settings.find("extra_special_tokens");
  if (extra && extra->is_object())
    for (const Json::Member& member : extra->members()) add({std::string(token_text(&member.second))});
  return special;
}

std::optional<std::uint64_t> id_in(std::string_view text) {
  std::uint64_t id = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), id);
  return failed == std::errc{} && end == text.data() + text.size() ? std::optional(id) : std::nullopt;
}

void declare_from_settings(const TokenizerFiles& files, const Json& decoder, SpecialMap& map) {
  if (!decoder.is_object())
    throw files.error(Errc::malformed, "added_tokens_decoder is not an object", "tokenizer_config.json");
  for (const auto& [key, value] : decoder.members()) {
    const auto id = id_in(key);
    if (!id || !map.declared.try_emplace(*id, declared_token(value)).second)
      throw files.error(Errc::malformed,
                        fmt::format("added_tokens_decoder has the id {}{}", quote(key), id ? " twice" : ""),
                        "tokenizer_config.json");
  }
}

// Folders from before added_tokens_decoder.
void declare_from_older_files(const TokenizerFiles& files, SpecialMap& map) {
  NameViewMap<bool> specials;
  for (const SpecialText& special : map.special) specials.emplace(special.text, true);
  if (const auto added = files.json("added_tokens.json"); added && added->is_object()) {
    TokenizerFiles::TokenIds ids;
    for (const auto& [text, value] : added->members()) {
      const bool special = specials.contains(text);
      ids.emplace_back(text, files.token_id(value, text, "added_tokens.json"));
      map.declared[ids.back().second] = {text, special, !special};
    }
    files.require_own_ids(ids, "added_tokens.json");
  }
  const Json* added = files.part("added_tokens");
  if (!added || !added->is_list()) return;
  for (const Json& token : added->list())
    if (const Json* id = token.find("id"))
      map.declared[files.token_id(*id, token_text(&token), "tokenizer.json")] = declared_token(token);
}

}  // namespace

DeclaredToken declared_token(const Json& value) {
  const Json* special = value.find("special");
  const Json* normalized = value.find("normalized");
  const bool is_special = is_true(special);
  return {std::string(token_text(&value)), is_special, normalized ? is_true(normalized) : !is_special};
}

SpecialMap read_special_map(const TokenizerFiles& files) {
  SpecialMap map;
  if (const Json* decoder = non_null(files.setting("added_tokens_decoder"))) {
    map.special = special_texts({files.settings(), nullptr}, files);
    declare_from_settings(files, *decoder, map);
    return map;
  }
  const auto overrides = files.json("special_tokens_map.json");
  map.special = special_texts({files.settings(), overrides ? &*overrides : nullptr}, files);
  declare_from_older_files(files, map);
  return map;
}

}  // namespace ballast::llamacpp
