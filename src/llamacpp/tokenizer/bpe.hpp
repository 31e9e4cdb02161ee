// Vocabularies that come from tokenizer.json: byte-level BPE ("gpt2"), and WordPiece ("bert").
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "llamacpp/tokenizer/job.hpp"
#include "llamacpp/tokenizer/vocabulary.hpp"

namespace ballast::llamacpp {

// How added tokens are taken; a few models have them as they are.
struct AddedTokenRules {
  bool decodes = true;         // the text is what the tokenizer makes of it
  bool looks_special = true;   // one that looks special is a control token
  bool replaces_marks = true;  // ▁ is a space
  std::string_view control{};  // this one is a control token
};

// A special token that the files may not name.
struct ExtraSpecial {
  std::string_view kind, token;
};

// All ids below vocab_size; those without a token are padding. Errc::mismatch if an id is not below it.
TokenList tokens_of(const TokenizerJob& job, const Vocabulary& vocabulary, const AddedTokenRules& rules = {});

// The name that the option gives, else the one that the structure says.
std::string pre_tokenizer_for(const TokenizerJob& job, const Vocabulary& vocabulary);

void write_bpe(TokenizerJob& job, std::span<const ExtraSpecial> extras = {}, const AddedTokenRules& rules = {});
void write_whitespace(TokenizerJob& job);
void write_wordpiece(TokenizerJob& job);

}  // namespace ballast::llamacpp
