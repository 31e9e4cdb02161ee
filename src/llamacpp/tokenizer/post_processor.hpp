// What the post-processor of a tokenizer.json says about the special tokens around a text.
#pragma once

#include <string>
#include <vector>

#include <ballast/json.hpp>

#include "llamacpp/tokenizer/tokenizer_files.hpp"

namespace ballast::llamacpp {

struct SpecialTokens;

// The members of tokenizer_config.json that are about special tokens: `X_token` and `add_X_token`. May be given null.
Json special_settings(const Json* settings);

// Sets what stands around a text. A token that the settings lack is added to them, a text that ends with another token
// than eos makes this token eos, and the old one eot or eom: `kinds` then grows. Without a tokenizer_config.json
// (`has_settings`), the settings stay as they are.
void read_post_processor(const TokenizerFiles& files, bool has_settings, Json& settings,
                         std::vector<std::string>& kinds, SpecialTokens& special);

}  // namespace ballast::llamacpp
