#include "llamacpp/tokenizer/post_processor.hpp"

#include <algorithm>
#include <span>
#include <string_view>

#include "llamacpp/tokenizer/special_tokens.hpp"

namespace ballast::llamacpp {
namespace {

// Null, an empty text and an empty object are no token.
bool is_token(const Json* value) {
  if (!value) return false;
  if (value->is_object()) return !value->members().empty();
  return value->is_text() && !value->text().empty();
}

// The special token of a part of a template, or an empty text.
std::string_view special_part(const Json& part) {
  const Json* token = part.find("SpecialToken");
  return token_text(token ? token->find("id") : nullptr);
}

std::string_view sequence_part(const Json& part) {
  const Json* sequence = part.find("Sequence");
  return token_text(sequence ? sequence->find("id") : nullptr);
}

std::span<const Json> parts_of(const Json& processor, std::string_view key) {
  const Json* parts = processor.find(key);
  return parts && parts->is_list() ? std::span<const Json>(parts->list()) : std::span<const Json>();
}

class PostProcessorReader {
 public:
  PostProcessorReader(bool has_settings, Json& settings, std::vector<std::string>& kinds, SpecialTokens& special)
      : has_settings_(has_settings), settings_(settings), kinds_(kinds), special_(special) {
    bos_ = given("bos_token");
    cls_ = given("cls_token");
    eos_ = given("eos_token");
    sep_ = given("sep_token");
    if (!is_token(&bos_) && is_token(&cls_)) bos_ = assign("bos_token", cls_);
    if (!is_token(&eos_) && is_token(&sep_)) eos_ = assign("eos_token", sep_);
  }

  void read(const Json& processor) {
    const std::string_view type = token_text(processor.find("type"));
    if (type == "RobertaProcessing") read_roberta(processor);
    if (type == "TemplateProcessing") read_template(processor);
  }

 private:
  Json given(std::string_view key) const {
    const Json* value = settings_.find(key);
    return value ? *value : Json();
  }
  const Json& assign(std::string_view key, const Json& value) {
    if (has_settings_) settings_.set(key, value);
    return value;
  }
  static bool is(const Json& token, std::string_view text) { return token.is_text() && token.text() == text; }

  void read_roberta(const Json& processor) {
    for (const char* kind : {"bos", "eos", "sep"}) special_.set_added(kind, true);
    const auto fill = [&](const char* key, const char* name, Json& token, const Json& otherwise) {
      if (is_token(&token) || !has_settings_) return;
      const Json* pair = processor.find(key);
      const bool has_pair = pair && pair->is_list() && !pair->list().empty();
      token = assign(name, has_pair ? pair->list()[0] : otherwise);
    };
    fill("cls", "cls_token", cls_, bos_);
    fill("sep", "sep_token", sep_, eos_);
  }

  // "single" is how a text alone looks, "pair" how two texts look, e.g. [CLS] A [SEP] B [SEP].
  void read_template(const Json& processor) {
    const auto single = parts_of(processor, "single"), pair = parts_of(processor, "pair");
    std::string_view first, last;
    if (single.size() > 1) {
      first = special_part(single.front());
      last = special_part(single.back());
      if (!first.empty()) read_first(first);
      if (!last.empty()) read_last(last);
    }
    if (!pair.empty()) read_pair(pair, first, last);
  }

  void read_first(std::string_view first) {
    if (!has_settings_) {
      bos_ = first;
    } else if (!is(bos_, first) && !is(cls_, first)) {
      if (!is_token(&bos_)) bos_ = assign("bos_token", first);
      if (!is_token(&cls_)) cls_ = assign("cls_token", first);
    }
    special_.set_added("bos", is(bos_, first) || is(cls_, first));
  }

  void read_last(std::string_view last) {
    if (!has_settings_) {
      eos_ = last;
    } else if (!is(eos_, last)) {
      keep_old_eos();
      eos_ = assign("eos_token", last);
    }
    special_.set_added("eos", true);
  }

  void keep_old_eos() {
    for (const char* kind : {"eot", "eom"}) {
      if (std::ranges::find(kinds_, kind) != kinds_.end()) continue;
      kinds_.emplace_back(kind);
      assign(std::string(kind) + "_token", eos_);
      return;
    }
  }

  void read_pair(std::span<const Json> pair, std::string_view first, std::string_view last) {
    const bool begins = !first.empty() && special_part(pair.front()) == first;
    const bool ends = !last.empty() && special_part(pair.back()) == last;
    if (pair.size() < std::size_t{begins} + std::size_t{ends}) return;
    pair = pair.subspan(begins, pair.size() - begins - ends);
    if (pair.size() < 3 || sequence_part(pair.front()) != "A" || sequence_part(pair.back()) != "B") return;
    pair = pair.subspan(1, pair.size() - 2);

    const auto separates = [&](const Json& part) {
      const std::string_view token = special_part(part);
      return !token.empty() && (is(sep_, token) || is(eos_, token));
    };
    const bool adds = (separates(pair[0]) && last.empty()) || (pair.size() == 2 && separates(pair[1]));
    special_.set_added("sep", adds);
    if (adds && !is_token(&sep_)) assign("sep_token", eos_);
  }

  bool has_settings_;
  Json& settings_;
  std::vector<std::string>& kinds_;
  SpecialTokens& special_;
  Json bos_, cls_, eos_, sep_;
};

}  // namespace

Json special_settings(const Json* settings) {
  Json chosen{Json::Members{}};
  if (!settings) return chosen;
  Json::Members members;
  for (const Json::Member& member : settings->members())
    if (member.first.ends_with("_token")) members.push_back(member);
  return members;
}

void read_post_processor(const TokenizerFiles& files, bool has_settings, Json& settings,
                         std::vector<std::string>& kinds, SpecialTokens& special) {
  PostProcessorReader reader(has_settings, settings, kinds, special);
  const Json* processor = non_null(files.part("post_processor"));
  if (!processor) return;
  const Json* parts = processor->find("processors");
  if (!parts || !parts->is_list()) return reader.read(*processor);
  for (const Json& part : parts->list()) reader.read(part);
}

}  // namespace ballast::llamacpp
