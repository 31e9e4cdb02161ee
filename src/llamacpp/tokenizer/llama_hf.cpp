#include "llamacpp/tokenizer/llama_hf.hpp"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>

#include "llamacpp/tokenizer/vocabulary.hpp"

namespace ballast::llamacpp {
namespace {

// What Gemma 4 says with these is text for the program that reads its answers.
constexpr std::array<std::string_view, 7> kVisibleTokens = {
    "<|channel>", "<channel|>", "<|tool_call>", "<tool_call|>", "<|tool_response>", "<tool_response|>", "<|\"|>"};

// The file has no scores. The tokens of the model come first, by id, then those that were added.
TokenList llama_hf_tokens(const TokenizerJob& job) {
  if (!job.files.tokenizer()) throw job.files.missing("tokenizer.json");
  const Vocabulary vocabulary(job.files);
  if (!is_llama_hf(job.files))
    throw job.files.error(Errc::unsupported,
                          "the tokenizer is not a BPE model with bytes to fall back to, as SentencePiece's are",
                          "tokenizer.json");
  const std::uint64_t size = job.checked_size(vocabulary.base_size());
  std::set<std::uint64_t> special_ids;
  for (const std::string& text : vocabulary.special_texts())
    if (const auto id = vocabulary.id(text)) special_ids.insert(*id);

  TokenList list;
  const auto texts = vocabulary.by_id(size);
  for (std::uint64_t id = 0; id < size; ++id) {
    if (!texts[id].data())
      throw job.files.error(Errc::malformed, fmt::format("no token has id {}, though there are {} tokens", id, size),
                            "tokenizer.json");
    const TokenType type = is_byte_token(texts[id])   ? TokenType::byte
                           : special_ids.contains(id) ? TokenType::control
                                                      : TokenType::normal;
    list.append(std::string(texts[id]), kAddedScore, type);
  }
  for (auto added = vocabulary.added().lower_bound(size); added != vocabulary.added().end(); ++added)
    list.append(added->second.text, kAddedScore,
                special_ids.contains(added->first) ? TokenType::control : TokenType::user_defined);
  return list;
}

}  // namespace

bool is_llama_hf(const TokenizerFiles& files) {
  const Json* model = files.part("model");
  const Json* decoder = files.part("decoder");
  return model && token_text(model->find("type")) == "BPE" && is_true(model->find("byte_fallback")) && decoder &&
         token_text(decoder->find("type")) == "Sequence";
}

void write_llama_hf(TokenizerJob& job) {
  const TokenList tokens = llama_hf_tokens(job);
  job.write_tokens("llama", "default", tokens);
  job.write_special({.token_count = tokens.size()});
}

void write_gemma4(TokenizerJob& job) {
  TokenList tokens = llama_hf_tokens(job);
  for (std::size_t id = 0; id < tokens.size(); ++id)
    if (std::ranges::find(kVisibleTokens, tokens.texts[id]) != kVisibleTokens.end())
      tokens.types[id] = static_cast<std::int32_t>(TokenType::user_defined);
  job.write_tokens("gemma4", "", tokens);
  job.write_special({.merges = Merges::needed});
  job.set("add_space_prefix", false);
  job.set("add_bos_token", true);
}

}  // namespace ballast::llamacpp
