#include "ops/adapter/modules.hpp"

#include <ballast/error.hpp>

#include <re2/re2.h>

#include <algorithm>

#include "core/text.hpp"
#include "ops/adapter/types.hpp"

namespace ballast::adapter {
namespace {

bool ends_with_name(std::string_view module, std::string_view name) {
  if (!module.ends_with(name)) return false;
  return module.size() == name.size() || module[module.size() - name.size() - 1] == '.';
}

std::string_view last_segment(std::string_view module) { return module.substr(module.rfind('.') + 1); }

std::string text_of(const Json& json, std::string_view field) {
  if (json.is_text()) return json.text();
  if (json.is_integer()) return std::to_string(json.integer());
  throw Error(Errc::malformed, "the field " + quote(field) + " of the adapter's configuration must be a list of names");
}

std::unique_ptr<re2::RE2> compiled(const std::string& pattern, std::string_view field) {
  auto expression = std::make_unique<re2::RE2>(pattern, re2::RE2::Quiet);
  if (expression->ok()) return expression;
  throw Error(Errc::unsupported,
              "the expression " + quote(pattern) + " of " + quote(field) + ": " + expression->error())
      .hint("write it without look-around and back-references");
}

}  // namespace

std::vector<std::string> words_of(const AdapterConfig& config, std::string_view field) {
  const Json* value = config.find(field);
  if (value == nullptr) return {};
  if (!value->is_list()) return {text_of(*value, field)};
  std::vector<std::string> words;
  for (const Json& item : value->list()) words.push_back(text_of(item, field));
  return words;
}

bool is_embedding(std::string_view module) {
  return ends_with_name(module, "embed_tokens") || ends_with_name(module, "lm_head");
}

bool is_word_embedding(std::string_view module) {
  return has_word(
      "embed_tokens wte word_embeddings tok_embeddings embed_in shared embedding embeddings tokens_embed "
      "token_embedding token_embeddings word_embedding token_embd emb",
      last_segment(module));
}

bool is_lookup_table(std::string_view module) {
  return is_word_embedding(module) || has_word(
                                          "wpe embed_positions position_embeddings position_embedding "
                                          "token_type_embeddings positions_embed",
                                          last_segment(module));
}

bool may_be_output_head(std::string_view module) {
  return has_word(
      "lm_head embed_out output output_layer head decoder lm_loss vocab_projector generator_lm_head proj_out",
      last_segment(module));
}

TargetModules::~TargetModules() = default;

bool TargetModules::Pattern::matches(std::string_view module) const {
  if (expression != nullptr) return re2::RE2::FullMatch(module, *expression);
  return std::ranges::any_of(ends, [&](const std::string& end) { return ends_with_name(module, end); });
}

TargetModules::Pattern TargetModules::pattern_of(const AdapterConfig& config, std::string_view field) {
  const Json* value = config.find(field);
  if (value != nullptr && value->is_text()) return {{}, compiled(value->text(), field)};
  return {words_of(config, field), nullptr};
}

TargetModules::TargetModules(const AdapterConfig& config)
    : layers_(words_of(config, "layers_to_transform")), layer_patterns_(words_of(config, "layers_pattern")) {
  const Json* value = config.find("target_modules");
  is_known_ = value != nullptr && !(value->is_text() && value->text() == "all-linear");
  if (!is_known_) return;
  targets_ = pattern_of(config, "target_modules");
  excluded_ = pattern_of(config, "exclude_modules");
}

bool TargetModules::contains(std::string_view module) const {
  return targets_.matches(module) && !excluded_.matches(module) && is_transformed(module);
}

// layers_to_transform holds where the module lies in one of the layers: "PATTERN.NUMBER.", or any number in the name.
bool TargetModules::is_transformed(std::string_view module) const {
  if (layers_.empty()) return true;
  std::string_view before, rest = module;
  while (!rest.empty()) {
    const std::size_t dot = rest.find('.');
    const std::string_view segment = rest.substr(0, dot);
    const bool is_number =
        !segment.empty() && std::ranges::all_of(segment, [](char c) { return c >= '0' && c <= '9'; });
    const bool is_layer =
        layer_patterns_.empty() || std::ranges::find(layer_patterns_, before) != layer_patterns_.end();
    if (is_number && is_layer) return std::ranges::find(layers_, segment) != layers_.end();
    before = segment;
    rest = dot == std::string_view::npos ? std::string_view() : rest.substr(dot + 1);
  }
  return false;
}

bool is_saved_whole(const std::vector<std::string>& modules_to_save, std::string_view module) {
  return std::ranges::any_of(modules_to_save, [&](const std::string& end) { return module.ends_with(end); });
}

}  // namespace ballast::adapter
