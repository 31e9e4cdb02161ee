// Which tokens of a tokenizer are special by name (bos_token, …), and which were added, as transformers finds them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "llamacpp/tokenizer/tokenizer_files.hpp"

namespace ballast::llamacpp {

struct DeclaredToken {
  std::string text;
  bool special = false, normalized = true;
};

struct SpecialText {
  std::string text;
  bool is_named = true;  // a file names it; else the class of the tokenizer has it
};

struct SpecialMap {
  std::vector<SpecialText> special;  // in the order of kSpecialNames, then the additional ones; no text twice
  std::map<std::uint64_t, DeclaredToken> declared;  // by the id that a file gives them, which a tokenizer does not keep
};

SpecialMap read_special_map(const TokenizerFiles& files);

// An element of added_tokens, or a value of added_tokens_decoder.
DeclaredToken declared_token(const Json& value);

}  // namespace ballast::llamacpp
