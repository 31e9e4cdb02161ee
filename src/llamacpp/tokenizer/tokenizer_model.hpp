// The kind of model that a tokenizer.json has.
#pragma once

#include <cstdint>

#include "llamacpp/tokenizer/tokenizer_files.hpp"

namespace ballast::llamacpp {

enum class TokenizerModel : std::uint8_t { bpe, word_piece, unigram };

// Errc::unsupported if tokenizer.json has a model of another kind, and Errc::malformed if it does not look like the
// kind that it says. A folder without a tokenizer.json may have any.
void require_model(const TokenizerFiles& files, TokenizerModel wanted);

}  // namespace ballast::llamacpp
