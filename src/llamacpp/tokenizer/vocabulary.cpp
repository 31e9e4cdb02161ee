#include "llamacpp/tokenizer/vocabulary.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "core/text.hpp"
#include "llamacpp/tokenizer/special_map.hpp"

namespace ballast::llamacpp {
namespace {

std::uint64_t id_of(const std::pair<std::string_view, std::uint64_t>& token) { return token.second; }

// The ids that tokenizer.json gives to added tokens. A tokenizer need not keep them, but two tokens never share one.
void require_own_added_ids(const TokenizerFiles& files, const Json::List& added) {
  TokenizerFiles::TokenIds ids;
  for (const Json& token : added)
    if (const Json* id = token.find("id"); id && id->is_integer() && id->number() >= 0)
      ids.emplace_back(token_text(&token), id->count());
  files.require_own_ids(ids, "tokenizer.json");
}

}  // namespace

Vocabulary::Vocabulary(const TokenizerFiles& files) {
  read_base(files);
  index_texts();
  read_added(files);
}

void Vocabulary::read_base(const TokenizerFiles& files) {
  std::string file = "tokenizer.json";
  const TokenizerJson* json = files.tokenizer_json();
  if (!json) {
    file = "vocab.json";
    vocab_json_ = TokenizerJson::read_vocabulary(files.folder(), file);
    if (vocab_json_) json = &*vocab_json_;
  }
  if (!json) {
    auto lines = files.folder().text("vocab.txt");
    if (!lines) throw files.missing("tokenizer.json");
    return read_text_lines(with_plain_newlines(std::move(*lines)));
  }
  const auto vocabulary = json->vocabulary();
  if (!vocabulary) throw files.error(Errc::malformed, "the tokenizer's model has no vocabulary", file);
  // { token: id, … }, or of a unigram model [ [token, score], … ]
  if (vocabulary->is_object()) {
    vocabulary->each_member([&](JsonText::String text, const Json& id) {
      if (!text.in_text) text.value = kept_.emplace_back(text.value);
      base_.emplace_back(text.value, files.token_id(id, text.value, file));
    });
    return files.require_own_ids(base_, file);
  }
  vocabulary->each_item([&](const Json& entry) {
    if (!entry.is_list() || entry.list().empty() || !entry.list()[0].is_text())
      throw files.error(Errc::malformed, fmt::format("token {} of the vocabulary has no text", base_.size()), file);
    base_.emplace_back(kept_.emplace_back(entry.list()[0].text()), base_.size());
  });
}

// A token a line. Of two lines with the same text, the later one counts.
void Vocabulary::read_text_lines(std::string text) {
  kept_.push_back(std::move(text));
  std::string_view rest = kept_.back();
  TokenizerFiles::TokenIds lines;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    lines.emplace_back(rest.substr(0, end), lines.size());
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  std::ranges::sort(lines);
  for (std::size_t i = 0; i < lines.size(); ++i)
    if (i + 1 == lines.size() || lines[i + 1].first != lines[i].first) base_.push_back(lines[i]);
  std::ranges::sort(base_, {}, id_of);
}

// A hash table of so many texts would take three times the memory.
void Vocabulary::index_texts() {
  by_text_.resize(base_.size());
  std::iota(by_text_.begin(), by_text_.end(), 0u);
  std::ranges::sort(by_text_, {}, [&](std::uint32_t at) { return std::pair(base_[at].first, at); });
}

std::optional<std::uint64_t> Vocabulary::base_id(std::string_view text) const {
  const auto text_at = [&](std::uint32_t at) { return base_[at].first; };
  const auto after = std::ranges::upper_bound(by_text_, text, {}, text_at);
  if (after == by_text_.begin() || text_at(*(after - 1)) != text) return std::nullopt;
  return base_[*(after - 1)].second;
}

void Vocabulary::read_added(const TokenizerFiles& files) {
  if (const Json* added = files.part("added_tokens"); added && added->is_list()) {
    require_own_added_ids(files, added->list());
    for (const Json& token : added->list()) {
      DeclaredToken declared = declared_token(token);
      add(files, {std::move(declared.text), declared.special, declared.normalized});
    }
  }
  SpecialMap map = read_special_map(files);
  NameViewMap<bool> specials;
  for (const SpecialText& special : map.special) specials.emplace(special.text, true);
  for (auto& [id, token] : map.declared) {
    const bool is_special = token.special || specials.contains(token.text);
    add(files, {std::move(token.text), is_special, token.normalized});
  }
  for (SpecialText& special : map.special) {
    if (!added_ids_.contains(special.text))
      add(files, {special.text, true, false, !special.is_named && !has(special.text)});
    special_.push_back(std::move(special.text));
  }
}

// A token keeps the id that its text has. A new text gets the next id, whatever id its file claims; the ids of a
// vocabulary with gaps are not free.
void Vocabulary::add(const TokenizerFiles& files, Added token) {
  if (token.text.empty()) return;
  std::uint64_t id = std::max(base_size(), added_.empty() ? 0 : added_.rbegin()->first + 1);
  if (const auto known = this->id(token.text)) {
    id = *known;
  } else if (const auto taken = std::ranges::lower_bound(base_, id, {}, id_of);
             taken != base_.end() && taken->second == id) {
    throw files.error(Errc::malformed,
                      fmt::format("the tokens {} and {} both have id {}", quote(taken->first), quote(token.text), id),
                      "tokenizer.json");
  }
  added_ids_.insert_or_assign(token.text, id);
  added_.insert_or_assign(id, std::move(token));
}

std::optional<std::uint64_t> Vocabulary::id(std::string_view text) const {
  if (const auto found = added_ids_.find(text); found != added_ids_.end()) return found->second;
  return base_id(text);
}

std::optional<std::uint64_t> Vocabulary::added_id(std::string_view text) const {
  const auto found = added_ids_.find(text);
  return found == added_ids_.end() ? std::nullopt : std::optional(found->second);
}

std::uint64_t Vocabulary::end() const noexcept {
  std::uint64_t end = 0;
  for (const auto& [id, token] : added_)
    if (!token.is_invented) end = id + 1;
  for (const auto& entry : base_) end = std::max(end, entry.second + 1);
  return end;
}

std::uint64_t Vocabulary::distinct_count() const {
  const auto is_new = [&](const auto& entry) { return !base_id(entry.first); };
  const auto added = static_cast<std::uint64_t>(std::ranges::count_if(added_ids_, is_new));
  std::uint64_t distinct = 0;
  for (std::size_t i = 0; i < by_text_.size(); ++i)
    distinct += i == 0 || base_[by_text_[i]].first != base_[by_text_[i - 1]].first ? 1u : 0u;
  return distinct + added;
}

std::vector<std::string_view> Vocabulary::by_id(std::uint64_t size) const {
  std::vector<std::string_view> texts(size);
  for (const auto& [text, id] : base_)
    if (id < size) texts[id] = text;
  for (const auto& [id, token] : added_)
    if (id < size) texts[id] = token.text;
  return texts;
}

}  // namespace ballast::llamacpp
