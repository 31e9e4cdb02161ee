// The merges of a BPE tokenizer, each as "left right".
#pragma once

#include <string>
#include <vector>

#include "llamacpp/tokenizer/tokenizer_files.hpp"

namespace ballast::llamacpp {

// From tokenizer.json, or else from merges.txt. Empty if neither has any.
std::vector<std::string> read_merges(const TokenizerFiles& files);

}  // namespace ballast::llamacpp
