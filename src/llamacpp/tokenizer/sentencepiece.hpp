// A SentencePiece model (tokenizer.model, spiece.model, sentencepiece.bpe.model), as far as a GGUF file needs it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "llamacpp/tokenizer/token_list.hpp"

namespace ballast::llamacpp {

enum class PieceModel : std::uint8_t { unigram = 1, bpe = 2, word = 3, character = 4 };

struct SentencePieceModel {
  struct Piece {
    std::string text;
    float score = 0;
    TokenType type = TokenType::normal;  // as a GGUF file has it: what the user defined is normal
  };
  std::vector<Piece> pieces;
  PieceModel kind = PieceModel::unigram;
  bool add_dummy_prefix = true, remove_extra_whitespaces = true;
  std::vector<std::uint8_t> charsmap;  // normalizer_spec.precompiled_charsmap
};

// Throws Errc::malformed with the byte.
SentencePieceModel parse_sentencepiece(std::span<const std::byte> bytes);

}  // namespace ballast::llamacpp
