// The merges of a BPE tokenizer, each as "left right".
#pragma once

#include <string_view>

#include <ballast/typed_metadata.hpp>

#include "llamacpp/tokenizer/tokenizer_files.hpp"

namespace ballast::llamacpp {

// An array under that key, which is a literal, from tokenizer.json, or else from merges.txt. It has no elements if
// neither has any.
MetadataEntry read_merges(const TokenizerFiles& files, std::string_view key);

}  // namespace ballast::llamacpp
