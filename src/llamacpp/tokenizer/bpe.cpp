#include "llamacpp/tokenizer/bpe.hpp"

#include <utility>

#include <fmt/format.h>

#include "core/text.hpp"
#include "llamacpp/tokenizer/added_text.hpp"
#include "llamacpp/tokenizer/pre_tokenizer.hpp"
#include "llamacpp/tokenizer/tokenizer_model.hpp"

namespace ballast::llamacpp {
namespace {

constexpr std::string_view kWithoutMerges = "kimi-k2";  // llama.cpp finds its merges by itself
constexpr std::string_view kContinuation = "##", kWordBegin = "▁";

// The first token that vocab_size has no room for.
[[noreturn]] void throw_beyond(const TokenizerJob& job, const Vocabulary& vocabulary, std::uint64_t size) {
  const auto added = vocabulary.added().lower_bound(size);
  const std::string which = added == vocabulary.added().end()
                                ? fmt::format("id {}", vocabulary.end() - 1)
                                : fmt::format("{} with id {}", quote(added->second.text), added->first);
  throw job.files
      .error(Errc::mismatch, fmt::format("the tokenizer has token {}, but vocab_size is {}", which, size),
             "config.json")
      .hint("the tokenizer and the weights are not of the same model, or tokens were added without room for them");
}

void add_token(AddedTokenDecoder& decoder, const AddedTokenRules& rules, const Vocabulary::Added& added,
               TokenList& list) {
  std::string text = rules.decodes && !added.normalized ? decoder.decoded(added.text) : added.text;
  const bool is_control = added.special || (rules.looks_special && looks_special(text)) ||
                          (!rules.control.empty() && text == rules.control);
  if (!is_control && rules.replaces_marks) text = with_spaces(text);
  list.append(std::move(text), 0, is_control ? TokenType::control : TokenType::user_defined);
}

std::string with_phantom_space(std::string_view text) {
  if (text.starts_with(kContinuation)) return std::string(text.substr(kContinuation.size()));
  return std::string(kWordBegin).append(text);
}

}  // namespace

TokenList tokens_of(const TokenizerJob& job, const Vocabulary& vocabulary, const AddedTokenRules& rules) {
  const std::uint64_t size = job.checked_size(job.vocab_size().value_or(vocabulary.distinct_count()));
  if (vocabulary.end() > size) throw_beyond(job, vocabulary, size);
  TokenList list;
  AddedTokenDecoder decoder(job.files);
  const auto texts = vocabulary.by_id(size);
  for (std::uint64_t id = 0; id < size; ++id) {
    const auto added = vocabulary.added().find(id);
    if (added != vocabulary.added().end())
      add_token(decoder, rules, added->second, list);
    else if (texts[id].data())
      list.append(std::string(texts[id]), 0, TokenType::normal);
    else
      list.append(padding_token(id), 0, TokenType::unused);
  }
  return list;
}

std::string pre_tokenizer_for(const TokenizerJob& job, const Vocabulary& vocabulary) {
  if (!job.options.pre_tokenizer.empty()) return job.options.pre_tokenizer;
  return pre_tokenizer_name(job.files, vocabulary, job.architecture);
}

void write_bpe(TokenizerJob& job, std::span<const ExtraSpecial> extras, const AddedTokenRules& rules) {
  const Vocabulary vocabulary(job.files);
  require_model(job.files, TokenizerModel::bpe);
  const std::string pre = pre_tokenizer_for(job, vocabulary);
  job.write_tokens("gpt2", pre, tokens_of(job, vocabulary, rules), false);
  const Merges merges = pre == kWithoutMerges ? Merges::if_any : Merges::needed;
  SpecialTokens special = read_special_tokens(job.files, {.merges = merges}, job.notes);
  for (const auto& [kind, token] : extras) special.set_id(kind, vocabulary.added_id(token));
  special.write(job.out);
}

void write_whitespace(TokenizerJob& job) {
  const Vocabulary vocabulary(job.files);
  require_model(job.files, TokenizerModel::bpe);
  job.write_tokens("whitespace", "whitespace", tokens_of(job, vocabulary), false);
  job.write_special({.merges = Merges::needed});
}

// llama.cpp wants a mark before the beginning of a word, where WordPiece marks what goes on. It never asks for the name
// of the pre-tokenizer.
void write_wordpiece(TokenizerJob& job) {
  const Vocabulary vocabulary(job.files);
  require_model(job.files, TokenizerModel::word_piece);
  TokenList list = tokens_of(job, vocabulary);
  job.write_type_count();
  for (std::size_t id = 0; id < list.size(); ++id)
    if (list.types[id] != static_cast<std::int32_t>(TokenType::control))
      list.texts[id] = with_phantom_space(list.texts[id]);
  job.write_tokens("bert", job.options.pre_tokenizer.empty() ? "jina-v2-en" : job.options.pre_tokenizer, list, false);
  job.write_special({.token_count = list.size()});
}

}  // namespace ballast::llamacpp
