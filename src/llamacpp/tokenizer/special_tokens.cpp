#include "llamacpp/tokenizer/special_tokens.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "core/text.hpp"
#include "llamacpp/tokenizer/merges.hpp"
#include "llamacpp/tokenizer/post_processor.hpp"

namespace ballast::llamacpp {
namespace {

struct Key {
  std::string_view kind, key;
};

// What has no key here is left out: GGUF knows no cls, prefix, suffix or middle token.
constexpr std::array kIdKeys = {
    Key{"bos", "tokenizer.ggml.bos_token_id"},     Key{"eos", "tokenizer.ggml.eos_token_id"},
    Key{"unk", "tokenizer.ggml.unknown_token_id"}, Key{"sep", "tokenizer.ggml.seperator_token_id"},
    Key{"pad", "tokenizer.ggml.padding_token_id"}, Key{"mask", "tokenizer.ggml.mask_token_id"},
    Key{"eot", "tokenizer.ggml.eot_token_id"},     Key{"eom", "tokenizer.ggml.eom_token_id"},
};
constexpr std::array kAddedKeys = {
    Key{"bos", "tokenizer.ggml.add_bos_token"},
    Key{"eos", "tokenizer.ggml.add_eos_token"},
    Key{"sep", "tokenizer.ggml.add_sep_token"},
};

std::string_view key_of(std::span<const Key> keys, std::string_view kind) {
  const auto found = std::ranges::find(keys, kind, &Key::kind);
  return found == keys.end() ? std::string_view() : found->key;
}

template <class T>
T* find_named(SpecialTokens::Named<T>& named, std::string_view kind) {
  const auto found = std::ranges::find(named, kind, [](const auto& entry) { return std::string_view(entry.first); });
  return found == named.end() ? nullptr : &found->second;
}

// JSON is nested at most 64 deep, and so are these calls.
void read_normalizer_flags(const Json& normalizer, SpecialTokens& special) {
  const std::string_view type = token_text(normalizer.find("type"));
  const auto flag = [&](const char* key, std::optional<bool>& value) {
    const Json* given = normalizer.find(key);
    if (given) value = given->is_bool() ? std::optional(given->boolean()) : std::nullopt;
  };
  if (type == "Lowercase") special.lowercase = true;
  if (type == "StripAccents") special.strip_accents = true;
  if (type == "BertNormalizer") {
    flag("lowercase", special.lowercase);
    flag("strip_accents", special.strip_accents);
  }
  const Json* parts = normalizer.find("normalizers");
  if (type != "Sequence" || !parts || !parts->is_list()) return;
  for (const Json& part : parts->list()) read_normalizer_flags(part, special);
}

// The ids that a tokenizer.json and the texts in a tokenizer_config.json say together.
class IdReader {
 public:
  IdReader(const TokenizerFiles& files, const SpecialOptions& options, SpecialTokens& special, std::vector<Note>& notes)
      : files_(files), options_(options), special_(special), notes_(notes) {}

  // The id of the first added token with this text.
  void by_text(const std::string& kind, std::string_view text) {
    const Json* added = files_.part("added_tokens");
    if (!added || !added->is_list()) return;
    for (const Json& token : added->list()) {
      const Json* content = token.find("content");
      if (content && content->is_text() && content->text() == text) return by_id(kind, token.find("id"));
    }
  }

  // Lists of ids are left out, as llama.cpp has room for one.
  void by_id(const std::string& kind, const Json* id) {
    if (!id || !id->is_integer()) return;
    if (id->number() >= 0 && id->number() < 4294967296.0 &&
        (!options_.token_count || id->count() < *options_.token_count))
      return special_.set_id(kind, id->count());
    if (!special_.id(kind))
      notes_.push_back({files_.folder().path("config.json"),
                        fmt::format("the {} token {} is not among the tokens, and is left out", kind, to_string(*id)),
                        Note::Kind::remark});
  }

 private:
  const TokenizerFiles& files_;
  const SpecialOptions& options_;
  SpecialTokens& special_;
  std::vector<Note>& notes_;
};

void read_settings(const Json& settings, const SpecialOptions& options, IdReader& ids, SpecialTokens& special) {
  for (const std::string& kind : options.kinds) {
    const Json* added = settings.find("add_" + kind + "_token");
    if (added && added->is_bool()) special.set_added(kind, added->boolean());
    const std::string_view text = token_text(settings.find(kind + "_token"));
    if (!text.empty()) ids.by_text(kind, text);
  }
}

// config.json as it is written: the defaults of transformers are no part of it.
void read_config(const Json& config, const SpecialOptions& options, IdReader& ids) {
  const Json* inner = config.find("text_config");
  for (const std::string& kind : options.kinds) {
    const std::string key = kind + "_token_id";
    const Json* id = non_null(config.find(key));
    if (!id && inner) id = inner->find(key);
    ids.by_id(kind, id);
  }
}

}  // namespace

void SpecialTokens::set_id(std::string_view kind, std::optional<std::uint64_t> id) {
  if (id && !find_named(ids, kind)) ids.emplace_back(kind, *id);
}

void SpecialTokens::replace_id(std::string_view kind, std::uint64_t id) {
  if (auto* known = find_named(ids, kind)) *known = id;
  set_id(kind, id);
}

void SpecialTokens::set_added(std::string_view kind, bool value) {
  if (bool* known = find_named(added, kind))
    *known = value;
  else
    added.emplace_back(kind, value);
}

std::optional<std::uint64_t> SpecialTokens::id(std::string_view kind) const {
  for (const auto& [name, id] : ids)
    if (name == kind) return id;
  return std::nullopt;
}

void SpecialTokens::write(TypedMetadata& out) const {
  if (merges) out.set(*merges);
  for (const auto& [kind, id] : ids)
    if (const auto key = key_of(kIdKeys, kind); !key.empty())
      out.set(MetadataEntry::of(key, static_cast<std::uint32_t>(id)));
  for (const auto& [kind, value] : added)
    if (const auto key = key_of(kAddedKeys, kind); !key.empty()) out.set(MetadataEntry::of(key, value));
  templates.write(out);
  if (lowercase) out.set(MetadataEntry::of("tokenizer.ggml.normalizer.lowercase", *lowercase));
  if (strip_accents) out.set(MetadataEntry::of("tokenizer.ggml.normalizer.strip_accents", *strip_accents));
}

SpecialTokens read_special_tokens(const TokenizerFiles& files, SpecialOptions options, std::vector<Note>& notes) {
  SpecialTokens special;
  IdReader ids(files, options, special, notes);
  if (const Json* normalizer = files.part("normalizer")) read_normalizer_flags(*normalizer, special);
  Json settings = special_settings(files.settings());
  const bool has_settings = files.settings() && !files.settings()->members().empty();
  if (files.tokenizer()) read_post_processor(files, has_settings, settings, options.kinds, special);
  if (has_settings) {
    special.templates = read_chat_templates(files, notes);
    read_settings(settings, options, ids, special);
  }
  if (files.config()) read_config(*files.config(), options, ids);
  if (options.merges == Merges::left_out) return special;
  MetadataEntry merges = read_merges(files, "tokenizer.ggml.merges");
  if (merges.count == 0 && options.merges == Merges::needed)
    throw files.error(Errc::unsupported, "the tokenizer has no merges; llama.cpp loads no BPE vocabulary without them",
                      "tokenizer.json");
  if (merges.count != 0) special.merges = std::move(merges);
  return special;
}

}  // namespace ballast::llamacpp
