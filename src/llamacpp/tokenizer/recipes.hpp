// Recipes: how the tokenizer of each family of models is written.
#pragma once

#include <string_view>

#include "llamacpp/tokenizer/job.hpp"

namespace ballast::llamacpp {

using TokenizerRecipe = void (*)(TokenizerJob&);

// The recipe of a model class ("LlamaForCausalLM"). Most classes, and all unknown ones, have byte-level BPE.
TokenizerRecipe tokenizer_recipe(std::string_view class_name);

}  // namespace ballast::llamacpp
