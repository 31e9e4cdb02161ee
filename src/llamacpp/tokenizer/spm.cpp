#include "llamacpp/tokenizer/spm.hpp"

#include <optional>
#include <span>

#include <fmt/format.h>

#include "llamacpp/tokenizer/pieces.hpp"

namespace ballast::llamacpp {
namespace {

constexpr std::string_view kDragon = "🐉";  // stands for the piece "\0", which ends a text in C
constexpr std::string_view kChatEnd = "<|im_end|>";
const std::string kModelFile = "tokenizer.model";

void write_pieces(TokenizerJob& job, const TokenList& tokens) {
  job.write_tokens("llama", "default", tokens);
  job.write_special({.token_count = tokens.size()});
}

// Gemma 3n has a smaller vocabulary for its layers, which is not the one of its tokenizer.
std::uint64_t piece_count(const TokenizerJob& job, const SentencePieceModel& model) {
  std::optional<std::uint64_t> size;
  if (job.architecture != "gemma3n") size = job.number("vocab_size_per_layer_input");
  if (!size) size = job.vocab_size();
  return job.checked_size(size.value_or(0) == 0 ? model.pieces.size() : *size);
}

}  // namespace

SentencePieceModel read_sentencepiece(const TokenizerFiles& files, const std::string& file) {
  const auto bytes = files.folder().bytes(file);
  if (!bytes) throw files.missing(file);
  try {
    return parse_sentencepiece(std::as_bytes(std::span(*bytes)));
  } catch (Error& error) {
    throw error.in(files.folder().path(file));
  }
}

TokenList sentencepiece_tokens(const TokenizerJob& job) {
  const SentencePieceModel model = read_sentencepiece(job.files, kModelFile);
  PieceList list(job.files, model, piece_count(job, model), Beyond::leaves_out);
  list.put_added_tokens_json();
  list.each_in_settings([&](std::uint64_t id, std::string_view text, const Json& token) {
    if (is_true(token.find("special")) || looks_special(text))
      list.put(id, text, kAddedScore, TokenType::control);
    else
      list.put(id, with_spaces(text), kAddedScore, TokenType::user_defined);
  });
  return std::move(list.tokens());
}

void write_sentencepiece(TokenizerJob& job) { write_pieces(job, sentencepiece_tokens(job)); }

void write_phi3_pieces(TokenizerJob& job) {
  const SentencePieceModel model = read_sentencepiece(job.files, kModelFile);
  PieceList list(job.files, model, job.vocab_size().value_or(model.pieces.size()), Beyond::refuses);
  list.put_added_tokens_json();
  list.each_in_settings(list.put_as_is());
  list.each_in_tokenizer(list.put_as_is());
  write_pieces(job, list.tokens());
}

// Every id has a piece. What added_tokens.json has comes behind them. A model that chats ends with <|im_end|>.
void write_internlm2_pieces(TokenizerJob& job) {
  SentencePieceModel model = read_sentencepiece(job.files, kModelFile);
  const std::uint64_t size = job.vocab_size().value_or(model.pieces.size());
  if (size > model.pieces.size())
    throw job.files.error(Errc::mismatch,
                          fmt::format("vocab_size is {}, but the tokenizer has {} pieces", size, model.pieces.size()),
                          "config.json");
  for (SentencePieceModel::Piece& piece : model.pieces) {
    if (piece.text.starts_with("[UNUSED")) piece.type = TokenType::unused;
    if (piece.text == std::string_view("\0", 1)) piece.text = kDragon;
  }
  model.pieces.resize(size);
  PieceList list(job.files, model, size, Beyond::refuses);
  if (const auto added = job.files.json("added_tokens.json"); added && added->is_object())
    for (const Json::Member& member : added->members())
      list.tokens().append(member.first, kAddedScore, TokenType::user_defined);

  std::optional<std::uint64_t> chat_end;
  const auto put = [&](std::uint64_t id, std::string_view text, const Json& token) {
    if (text == kChatEnd) chat_end = id;
    list.put_as_is()(id, text, token);
  };
  list.each_in_settings(put);
  list.each_in_tokenizer(put);

  job.write_tokens("llama", "default", list.tokens());
  job.set("add_space_prefix", model.add_dummy_prefix);
  SpecialTokens special = read_special_tokens(job.files, {.token_count = list.tokens().size()}, job.notes);
  if (chat_end) special.replace_id("eos", *chat_end);
  special.write(job.out);
}

void write_internlm3_pieces(TokenizerJob& job) {
  const TokenList tokens = sentencepiece_tokens(job);
  job.write_tokens("llama", "default", tokens);
  job.write_prefix_space();
  SpecialTokens special = read_special_tokens(job.files, {.token_count = tokens.size()}, job.notes);
  const PieceList no_pieces(job.files, {}, 0, Beyond::leaves_out);
  no_pieces.each_in_settings([&](std::uint64_t id, std::string_view text, const Json& token) {
    if (text == kChatEnd && is_true(token.find("special")) && special.id("eos")) special.replace_id("eos", id);
  });
  special.write(job.out);
}

// Arctic uses two of its pieces for other texts.
void write_arctic_pieces(TokenizerJob& job) {
  const SentencePieceModel model = read_sentencepiece(job.files, kModelFile);
  PieceList list(job.files, model, job.vocab_size().value_or(model.pieces.size()), Beyond::leaves_out);
  const std::string_view unknown = token_text(job.files.setting("unk_token"));
  list.each_in_settings([&](std::uint64_t id, std::string_view text, const Json& token) {
    if (!is_true(token.find("special"))) return list.put(id, text, kUnusedScore, TokenType::user_defined);
    list.put(id, text, 0, text == unknown ? TokenType::unknown : TokenType::control);
  });
  write_pieces(job, list.tokens());
}

}  // namespace ballast::llamacpp
