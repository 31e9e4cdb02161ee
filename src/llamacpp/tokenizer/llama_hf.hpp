// SentencePiece's BPE in a tokenizer.json, of a folder without tokenizer.model.
#pragma once

#include "llamacpp/tokenizer/job.hpp"

namespace ballast::llamacpp {

bool is_llama_hf(const TokenizerFiles& files);
void write_llama_hf(TokenizerJob& job);
void write_gemma4(TokenizerJob& job);

}  // namespace ballast::llamacpp
