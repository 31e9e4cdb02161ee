// Recipes: how the tokenizer of each family of models is written.
#pragma once

#include <string_view>

#include "llamacpp/tokenizer/job.hpp"

namespace ballast::llamacpp {

using TokenizerRecipe = void (*)(TokenizerJob&);

// The recipe of a model class ("LlamaForCausalLM"). Most classes, and all unknown ones, have byte-level BPE.
TokenizerRecipe tokenizer_recipe(std::string_view class_name);

// Those that are more than one of the kinds in bpe.hpp, spm.hpp, unigram.hpp and llama_hf.hpp.
namespace recipes {

void chatglm(TokenizerJob& job);
void copied_prefix(TokenizerJob& job);
void deci(TokenizerJob& job);
void dots3(TokenizerJob& job);
void dream(TokenizerJob& job);
void euro_bert(TokenizerJob& job);
void gemma(TokenizerJob& job);
void gemma2(TokenizerJob& job);
void gemma3(TokenizerJob& job);
void glm4(TokenizerJob& job);
void glm4_moe(TokenizerJob& job);
void granite_hybrid(TokenizerJob& job);
void grok(TokenizerJob& job);
void hunyuan(TokenizerJob& job);
void interns1(TokenizerJob& job);
void jamba(TokenizerJob& job);
void jina_bert(TokenizerJob& job);
void laguna(TokenizerJob& job);
void llada(TokenizerJob& job);
void llama(TokenizerJob& job);
void mamba(TokenizerJob& job);
void mamba2(TokenizerJob& job);
void minimax(TokenizerJob& job);
void modern_bert(TokenizerJob& job);
void mpt(TokenizerJob& job);
void muse_glimmer(TokenizerJob& job);
void nemotron(TokenizerJob& job);
void nemotron_h(TokenizerJob& job);
void no_tokenizer(TokenizerJob& job);
void nomic_bert(TokenizerJob& job);
void of_code(TokenizerJob& job);
void of_other_kind(TokenizerJob& job);
void of_target(TokenizerJob& job);
void phi3(TokenizerJob& job);
void pieces_or_bpe(TokenizerJob& job);
void plain_bpe(TokenizerJob& job);
void qwen3_asr(TokenizerJob& job);
void qwen3_omni(TokenizerJob& job);
void refact(TokenizerJob& job);
void roberta(TokenizerJob& job);
void rwkv(TokenizerJob& job);
void solar_open(TokenizerJob& job);

}  // namespace recipes

}  // namespace ballast::llamacpp
