// The tokenizer of a folder of Hugging Face's as the `tokenizer.*` metadata of a GGUF file, as llama.cpp's converter
// writes it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <ballast/checkpoint.hpp>
#include <ballast/json.hpp>
#include <ballast/typed_metadata.hpp>

#include "llamacpp/model_folder.hpp"

namespace ballast::llamacpp {

struct TokenizerOptions {
  std::string pre_tokenizer{};  // takes the place of what the structure of tokenizer.json says
};

// Appends `tokenizer.*`. `config` is config.json as the converter sees it: with transformers' defaults, and with the
// members of text_config in its root. `class_name` is architectures[0] ("LlamaForCausalLM"), `architecture` is
// general.architecture ("llama"). Throws Errc::not_found if the folder lacks a file, Errc::malformed for a broken one,
// Errc::mismatch if tokens do not fit vocab_size, and Errc::unsupported for a tokenizer that llama.cpp does not know.
void add_tokenizer(const ModelFolder& folder, const Json& config, std::string_view class_name,
                   std::string_view architecture, const TokenizerOptions& options, TypedMetadata& out,
                   std::vector<Note>& notes);

}  // namespace ballast::llamacpp
