// The model classes of transformers, and what llama.cpp calls the architecture of each.
#pragma once

#include <string_view>

namespace ballast::llamacpp {

// "llama" for "LlamaForCausalLM"; empty if the class is not known. A few classes become another architecture if their
// configuration says so: see model_config.hpp.
std::string_view architecture_of(std::string_view class_name);

}  // namespace ballast::llamacpp
