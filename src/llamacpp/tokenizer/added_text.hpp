// The text of an added token as it comes out of its own tokenizer, encoded and decoded again. llama.cpp takes this text
// for the token.
#pragma once

#include <string>
#include <string_view>

#include <ballast/json.hpp>

namespace ballast::llamacpp {

// `decoder` is that of tokenizer.json; null if there is none. `cleans_spaces` is clean_up_tokenization_spaces. Almost
// every token is its own text.
std::string decoded_token(std::string_view token, const Json* decoder, bool cleans_spaces);

}  // namespace ballast::llamacpp
