// Unigram vocabularies ("t5"): T5's and XLM-RoBERTa's.
#pragma once

#include "llamacpp/tokenizer/job.hpp"

namespace ballast::llamacpp {

void write_t5(TokenizerJob& job);
void write_xlm_roberta(TokenizerJob& job);  // from sentencepiece.bpe.model, or else from tokenizer.json

}  // namespace ballast::llamacpp
