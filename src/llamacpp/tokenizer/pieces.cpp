#include "llamacpp/tokenizer/pieces.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "core/text.hpp"

namespace ballast::llamacpp {

PieceList::PieceList(const TokenizerFiles& files, const SentencePieceModel& model, std::uint64_t size, Beyond beyond)
    : files_(files), beyond_(beyond), tokens_(TokenList::unused(size)) {
  if (beyond == Beyond::refuses && model.pieces.size() > size)
    throw files.error(Errc::mismatch,
                      fmt::format("the tokenizer has {} pieces, but vocab_size is {}", model.pieces.size(), size),
                      "config.json");
  const std::uint64_t count = std::min<std::uint64_t>(size, model.pieces.size());
  for (std::uint64_t id = 0; id < count; ++id) {
    const SentencePieceModel::Piece& piece = model.pieces[id];
    tokens_.set(id, piece.text, piece.score, piece.type);
  }
}

void PieceList::put(std::uint64_t id, std::string_view text, float score, TokenType type) {
  if (id < tokens_.size()) return tokens_.set(id, std::string(text), score, type);
  if (beyond_ == Beyond::leaves_out) return;
  throw files_.error(Errc::mismatch,
                     fmt::format("token {} has id {}, but there are {} tokens", quote(text), id, tokens_.size()),
                     "tokenizer_config.json");
}

void PieceList::put_added_tokens_json() {
  const std::string file = "added_tokens.json";
  const auto added = files_.json(file);
  if (!added) return;
  if (!added->is_object()) throw files_.error(Errc::malformed, "the file is not a JSON object", file);
  TokenizerFiles::TokenIds ids;
  for (const auto& [text, value] : added->members()) {
    const std::uint64_t id = files_.token_id(value, text, file);
    ids.emplace_back(text, id);
    if (id < tokens_.size()) put(id, text, kAddedScore, TokenType::user_defined);
  }
  files_.require_own_ids(ids, file);
}

void PieceList::each_in_settings(const Put& put) const {
  const std::string file = "tokenizer_config.json";
  const Json* decoder = non_null(files_.setting("added_tokens_decoder"));
  if (!decoder) return;
  if (!decoder->is_object()) throw files_.error(Errc::malformed, "added_tokens_decoder is not an object", file);
  for (const auto& [key, token] : decoder->members()) {
    std::uint32_t id = 0;
    const auto [end, failed] = std::from_chars(key.data(), key.data() + key.size(), id);
    const Json* content = token.find("content");
    if (failed != std::errc{} || end != key.data() + key.size() || !content || !content->is_text())
      throw files_.error(Errc::malformed, fmt::format("added token {} is no token with an id", quote(key)), file);
    put(id, content->text(), token);
  }
}

void PieceList::each_in_tokenizer(const Put& put) const {
  const Json* added = files_.part("added_tokens");
  if (!added || !added->is_list()) return;
  for (const Json& token : added->list()) {
    const Json* id = token.find("id");
    const Json* content = token.find("content");
    if (!id || !content || !content->is_text())
      throw files_.error(Errc::malformed, "an added token has no id or no content", "tokenizer.json");
    put(files_.token_id(*id, content->text(), "tokenizer.json"), content->text(), token);
  }
}

PieceList::Put PieceList::put_as_is() {
  return [this](std::uint64_t id, std::string_view text, const Json& token) {
    put(id, text, kAddedScore, is_true(token.find("special")) ? TokenType::control : TokenType::user_defined);
  };
}

}  // namespace ballast::llamacpp
