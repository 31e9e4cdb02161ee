// Folders as the Hugging Face Hub has them: config.json, a small tokenizer, and weights of BF16 in one file.
#pragma once

#include <cstdint>
#include <string>

#include <ballast/checkpoint.hpp>

namespace ballast::bench {

struct ModelSizes {
  std::string type;  // "llama", whose queries and keys are reordered for llama.cpp, or "qwen2", which has no such rows
  std::uint64_t hidden, intermediate, heads, kv_heads, blocks, vocabulary;
};

enum class Values {
  gaussian,  // some numbers over and over
  hole,      // zeros that take no space on the disk
};

// Returns the path of the weights.
std::string write_folder(const std::string& folder, const ModelSizes& sizes, Values values);

// The model in the folder as llama.cpp wants it, lazily.
Checkpoint gguf_model(const std::string& folder);

}  // namespace ballast::bench
