// The name by which llama.cpp knows how a tokenizer cuts text into words (tokenizer.ggml.pre).
//
// llama.cpp's converter runs the tokenizer and compares a digest, which knows published vocabularies only. Here the
// structure of tokenizer.json decides, by a table: every vocabulary with this structure is cut alike.
#pragma once

#include <string>
#include <string_view>

#include <ballast/json.hpp>

#include "llamacpp/tokenizer/tokenizer_files.hpp"
#include "llamacpp/tokenizer/vocabulary.hpp"

namespace ballast::llamacpp {

// The pre-tokenizer in words: "Split <llama-3>, ByteLevel without regex". A regular expression that is known stands
// there by its name. `adds_prefix_space` is what tokenizer_config.json says.
std::string pre_tokenizer_words(const Json* pre_tokenizer, bool adds_prefix_space);

// Throws Errc::unsupported if the structure is not known, with a hint that names the option.
std::string pre_tokenizer_name(const TokenizerFiles& files, const Vocabulary& vocabulary,
                               std::string_view architecture);

// Throws Errc::invalid_argument if llama.cpp does not know the name.
void require_pre_tokenizer(std::string_view name);

}  // namespace ballast::llamacpp
