// The tokenizer classes of transformers 4.57, as far as they add tokens that the files do not have.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "llamacpp/tokenizer/tokenizer_files.hpp"

namespace ballast::llamacpp {

// In the order in which a tokenizer adds those that are missing.
inline constexpr std::array<std::string_view, 7> kSpecialNames = {"bos_token", "eos_token", "unk_token", "sep_token",
                                                                  "pad_token", "cls_token", "mask_token"};

struct TokenizerClass {
  std::string_view name;                         // without "Fast"
  std::array<std::string_view, 7> special = {};  // what each of kSpecialNames is, if nobody says otherwise
  std::optional<bool> puts_bos = std::nullopt;   // it replaces the post-processor: with bos before the text, or not
};

// The class that tokenizer_config.json names, else the class that belongs to the model type of config.json. A class
// that is not known adds no tokens.
const TokenizerClass& tokenizer_class(const TokenizerFiles& files);

}  // namespace ballast::llamacpp
