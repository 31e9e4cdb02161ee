#include "llamacpp/tokenizer/unigram.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "core/base64.hpp"
#include "llamacpp/tokenizer/pieces.hpp"
#include "llamacpp/tokenizer/spm.hpp"
#include "llamacpp/tokenizer/tokenizer_model.hpp"
#include "llamacpp/tokenizer/vocabulary.hpp"

namespace ballast::llamacpp {
namespace {

constexpr std::uint64_t kNomicMask = 250001;  // the piece that sentencepiece.bpe.model lacks

void write_charsmap(TokenizerJob& job, std::span<const std::uint8_t> charsmap) {
  if (!charsmap.empty())
    job.out.set(MetadataEntry::numbers<std::uint8_t>("tokenizer.ggml.precompiled_charsmap", charsmap));
}

struct UnigramSettings {
  bool adds_prefix, removes_spaces;
  std::vector<std::uint8_t> charsmap;
};

void write_xlm_roberta_tokens(TokenizerJob& job, const TokenList& tokens, const UnigramSettings& settings) {
  job.write_tokens("t5", "default", tokens);
  job.set("add_space_prefix", settings.adds_prefix);
  job.write_type_count();
  job.set("remove_extra_whitespaces", settings.removes_spaces);
  write_charsmap(job, settings.charsmap);
  job.write_special({.token_count = tokens.size()});
}

std::uint64_t at_least_vocab_size(const TokenizerJob& job, std::uint64_t size) {
  return job.checked_size(std::max(job.vocab_size().value_or(0), size));
}

// fairseq's ids: four special tokens, then the pieces after SentencePiece's own three.
void realign(TokenList& list) {
  list.texts.erase(list.texts.begin(), list.texts.begin() + 3);
  list.scores.erase(list.scores.begin(), list.scores.begin() + 3);
  list.types.erase(list.types.begin(), list.types.begin() + 3);
  TokenList tokens;
  for (const char* text : {"<s>", "<pad>", "</s>"}) tokens.append(text, 0, TokenType::control);
  tokens.append("<unk>", 0, TokenType::unknown);
  for (std::size_t id = 0; id + 1 < list.size(); ++id)
    tokens.append(std::move(list.texts[id]), list.scores[id], static_cast<TokenType>(list.types[id]));
  list = std::move(tokens);
}

void write_from_model(TokenizerJob& job, const std::string& file) {
  const SentencePieceModel model = read_sentencepiece(job.files, file);
  if (model.kind != PieceModel::unigram)
    throw job.files.error(Errc::unsupported, "the tokenizer is not a unigram model, as XLM-RoBERTa's is", file);
  PieceList list(job.files, model, at_least_vocab_size(job, std::max<std::uint64_t>(4, model.pieces.size())),
                 Beyond::refuses);
  realign(list.tokens());
  if (job.architecture == "nomic-bert-moe") list.put(kNomicMask, "<mask>", 0, TokenType::control);
  write_xlm_roberta_tokens(job, list.tokens(),
                           {model.add_dummy_prefix, model.remove_extra_whitespaces, model.charsmap});
}

// The first charsmap of a normalizer or of its parts. JSON is nested at most 64 deep, and so are these calls.
std::string_view charsmap_in(const Json& normalizer) {
  const std::string_view own = token_text(normalizer.find("precompiled_charsmap"));
  const Json* parts = normalizer.find("normalizers");
  if (!own.empty() || !parts || !parts->is_list()) return own;
  for (const Json& part : parts->list())
    if (const std::string_view found = charsmap_in(part); !found.empty()) return found;
  return {};
}

std::vector<std::uint8_t> charsmap_of(const TokenizerFiles& files) {
  const Json* normalizer = files.part("normalizer");
  const auto bytes = from_base64(normalizer ? charsmap_in(*normalizer) : std::string_view());
  if (!bytes) throw files.error(Errc::malformed, "precompiled_charsmap is not base64", "tokenizer.json");
  std::vector<std::uint8_t> charsmap;
  for (const std::byte byte : *bytes) charsmap.push_back(std::to_integer<std::uint8_t>(byte));
  return charsmap;
}

// The scores of [ [token, score], … ].
std::vector<float> unigram_scores(const TokenizerFiles& files) {
  const auto vocabulary = files.tokenizer_json() ? files.tokenizer_json()->vocabulary() : std::nullopt;
  if (!vocabulary || vocabulary->is_object())
    throw files.error(Errc::unsupported, "the tokenizer is not a unigram model, as XLM-RoBERTa's is", "tokenizer.json");
  std::vector<float> scores;
  vocabulary->each_item([&](const Json& entry) {
    if (!entry.is_list() || entry.list().size() != 2 || !entry.list()[1].is_number() ||
        std::isnan(entry.list()[1].number()))
      throw files.error(Errc::malformed, fmt::format("token {} has no score", scores.size()), "tokenizer.json");
    scores.push_back(static_cast<float>(entry.list()[1].number()));
  });
  return scores;
}

std::uint64_t unknown_id(const TokenizerFiles& files, const Vocabulary& vocabulary) {
  if (const auto id = vocabulary.added_id(token_text(files.setting("unk_token")))) return *id;
  const Json* model = files.part("model");
  const Json* id = model ? model->find("unk_id") : nullptr;
  return id && id->is_integer() && id->number() >= 0 ? id->count() : 3;
}

void write_from_json(TokenizerJob& job) {
  const TokenizerFiles& files = job.files;
  const std::vector<float> scores = unigram_scores(files);
  require_model(files, TokenizerModel::unigram);
  const Vocabulary vocabulary(files);
  const auto texts = vocabulary.by_id(scores.size());
  const std::uint64_t unknown = unknown_id(files, vocabulary);
  NameMap<bool> specials;
  for (const std::string& text : vocabulary.special_texts()) specials.emplace(text, true);

  TokenList list = TokenList::unused(at_least_vocab_size(job, scores.size()));
  for (std::uint64_t id = 0; id < scores.size(); ++id) {
    TokenType type = TokenType::normal;
    if (id == unknown)
      type = TokenType::unknown;
    else if (specials.contains(texts[id]))
      type = TokenType::control;
    else if (vocabulary.added().contains(id))
      type = TokenType::user_defined;
    list.set(id, std::string(texts[id]), scores[id], type);
  }
  write_xlm_roberta_tokens(job, list,
                           {is_true(files.setting("add_prefix_space")),
                            is_true(files.setting("clean_up_tokenization_spaces")), charsmap_of(files)});
}

}  // namespace

void write_t5(TokenizerJob& job) {
  const std::string file = job.files.has("tokenizer.model") ? "tokenizer.model" : "spiece.model";
  const SentencePieceModel model = read_sentencepiece(job.files, file);
  if (model.kind == PieceModel::bpe && file == "tokenizer.model") return write_sentencepiece(job);
  if (model.kind != PieceModel::unigram)
    throw job.files.error(Errc::unsupported, "the tokenizer is not a unigram model, as T5's is", file);
  PieceList list(job.files, model, job.vocab_size().value_or(model.pieces.size()), Beyond::refuses);
  list.put_added_tokens_json();
  job.write_tokens("t5", "default", list.tokens());
  job.set("add_space_prefix", model.add_dummy_prefix);
  job.set("remove_extra_whitespaces", model.remove_extra_whitespaces);
  write_charsmap(job, model.charsmap);
  job.write_special({.token_count = list.tokens().size()});
}

void write_xlm_roberta(TokenizerJob& job) {
  const std::string file = "sentencepiece.bpe.model";
  if (job.files.has(file)) return write_from_model(job, file);
  if (!job.files.tokenizer()) throw job.files.missing("tokenizer.json");
  write_from_json(job);
}

}  // namespace ballast::llamacpp
