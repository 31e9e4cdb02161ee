// Vocabularies of SentencePiece: tokenizer.model ("llama"), and unigram models ("t5").
#pragma once

#include <string>

#include "llamacpp/tokenizer/job.hpp"
#include "llamacpp/tokenizer/sentencepiece.hpp"

namespace ballast::llamacpp {

// Errc::not_found if there is no such file.
SentencePieceModel read_sentencepiece(const TokenizerFiles& files, const std::string& file);

// The pieces, then added_tokens.json, then added_tokens_decoder.
TokenList sentencepiece_tokens(const TokenizerJob& job);

void write_sentencepiece(TokenizerJob& job);
void write_phi3_pieces(TokenizerJob& job);
void write_internlm2_pieces(TokenizerJob& job);
void write_internlm3_pieces(TokenizerJob& job);
void write_arctic_pieces(TokenizerJob& job);

}  // namespace ballast::llamacpp
