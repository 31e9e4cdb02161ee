// The names of tensors in GGUF and at Hugging Face, and what llama.cpp's converter does to their values in between.
//
// To add an architecture, add a table of its rows and a line in kArchitectures. A row names a module, and so both its
// ".weight" and its ".bias"; {} is the number of the block.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace ballast::names {

// Changes on the way to GGUF; they are undone on the way back.
enum class Change : std::uint8_t {
  none,
  permute_queries,  // interleaves the two halves of each head's rows, since llama.cpp rotates neighbours
  permute_keys,     // the same, with the number of heads of keys and values
  add_one,          // to a norm's weight, which its architecture keeps as the difference from 1
  transpose,        // a matrix that Hugging Face keeps as [in, out]
};

struct Row {
  std::string_view gguf, huggingface;
  Change change = Change::none;
};

// Another beginning of Hugging Face's names: inside a larger model, or without the head around it.
struct Prefix {
  std::string_view found, usual;
};

struct Architecture {
  std::string_view name;  // the usual name
  std::string_view gguf;  // as in general.architecture and in the keys of its numbers
  std::span<const Row> rows;
  std::span<const Prefix> prefixes;
  std::span<const std::string_view> left_out;  // whole names at Hugging Face of tensors that GGUF cannot hold
};

inline constexpr Row kLlama[] = {
    {"token_embd", "model.embed_tokens"},
    {"output_norm", "model.norm"},
    {"output", "lm_head"},
    {"blk.{}.attn_norm", "model.layers.{}.input_layernorm"},
    {"blk.{}.attn_q", "model.layers.{}.self_attn.q_proj", Change::permute_queries},
    {"blk.{}.attn_k", "model.layers.{}.self_attn.k_proj", Change::permute_keys},
    {"blk.{}.attn_v", "model.layers.{}.self_attn.v_proj"},
    {"blk.{}.attn_output", "model.layers.{}.self_attn.o_proj"},
    {"blk.{}.ffn_norm", "model.layers.{}.post_attention_layernorm"},
    {"blk.{}.ffn_gate", "model.layers.{}.mlp.gate_proj"},
    {"blk.{}.ffn_up", "model.layers.{}.mlp.up_proj"},
    {"blk.{}.ffn_down", "model.layers.{}.mlp.down_proj"},
};

inline constexpr Row kQwen2[] = {
    {"token_embd", "model.embed_tokens"},
    {"output_norm", "model.norm"},
    {"output", "lm_head"},
    {"blk.{}.attn_norm", "model.layers.{}.input_layernorm"},
    {"blk.{}.attn_q", "model.layers.{}.self_attn.q_proj"},
    {"blk.{}.attn_k", "model.layers.{}.self_attn.k_proj"},
    {"blk.{}.attn_v", "model.layers.{}.self_attn.v_proj"},
    {"blk.{}.attn_output", "model.layers.{}.self_attn.o_proj"},
    {"blk.{}.ffn_norm", "model.layers.{}.post_attention_layernorm"},
    {"blk.{}.ffn_gate", "model.layers.{}.mlp.gate_proj"},
    {"blk.{}.ffn_up", "model.layers.{}.mlp.up_proj"},
    {"blk.{}.ffn_down", "model.layers.{}.mlp.down_proj"},
};

inline constexpr Row kQwen3[] = {
    {"token_embd", "model.embed_tokens"},
    {"output_norm", "model.norm"},
    {"output", "lm_head"},
    {"blk.{}.attn_norm", "model.layers.{}.input_layernorm"},
    {"blk.{}.attn_q", "model.layers.{}.self_attn.q_proj"},
    {"blk.{}.attn_q_norm", "model.layers.{}.self_attn.q_norm"},
    {"blk.{}.attn_k", "model.layers.{}.self_attn.k_proj"},
    {"blk.{}.attn_k_norm", "model.layers.{}.self_attn.k_norm"},
    {"blk.{}.attn_v", "model.layers.{}.self_attn.v_proj"},
    {"blk.{}.attn_output", "model.layers.{}.self_attn.o_proj"},
    {"blk.{}.ffn_norm", "model.layers.{}.post_attention_layernorm"},
    {"blk.{}.ffn_gate", "model.layers.{}.mlp.gate_proj"},
    {"blk.{}.ffn_up", "model.layers.{}.mlp.up_proj"},
    {"blk.{}.ffn_down", "model.layers.{}.mlp.down_proj"},
};

inline constexpr Row kGemma2[] = {
    {"token_embd", "model.embed_tokens"},
    {"output_norm", "model.norm", Change::add_one},
    {"blk.{}.attn_norm", "model.layers.{}.input_layernorm", Change::add_one},
    {"blk.{}.attn_q", "model.layers.{}.self_attn.q_proj"},
    {"blk.{}.attn_k", "model.layers.{}.self_attn.k_proj"},
    {"blk.{}.attn_v", "model.layers.{}.self_attn.v_proj"},
    {"blk.{}.attn_output", "model.layers.{}.self_attn.o_proj"},
    {"blk.{}.post_attention_norm", "model.layers.{}.post_attention_layernorm", Change::add_one},
    {"blk.{}.ffn_norm", "model.layers.{}.pre_feedforward_layernorm", Change::add_one},
    {"blk.{}.ffn_gate", "model.layers.{}.mlp.gate_proj"},
    {"blk.{}.ffn_up", "model.layers.{}.mlp.up_proj"},
    {"blk.{}.ffn_down", "model.layers.{}.mlp.down_proj"},
    {"blk.{}.post_ffw_norm", "model.layers.{}.post_feedforward_layernorm", Change::add_one},
};

inline constexpr Row kGemma3[] = {
    {"token_embd", "model.embed_tokens"},
    {"output_norm", "model.norm", Change::add_one},
    {"output", "lm_head"},
    {"blk.{}.attn_norm", "model.layers.{}.input_layernorm", Change::add_one},
    {"blk.{}.attn_q", "model.layers.{}.self_attn.q_proj"},
    {"blk.{}.attn_q_norm", "model.layers.{}.self_attn.q_norm", Change::add_one},
    {"blk.{}.attn_k", "model.layers.{}.self_attn.k_proj"},
    {"blk.{}.attn_k_norm", "model.layers.{}.self_attn.k_norm", Change::add_one},
    {"blk.{}.attn_v", "model.layers.{}.self_attn.v_proj"},
    {"blk.{}.attn_output", "model.layers.{}.self_attn.o_proj"},
    {"blk.{}.post_attention_norm", "model.layers.{}.post_attention_layernorm", Change::add_one},
    {"blk.{}.ffn_norm", "model.layers.{}.pre_feedforward_layernorm", Change::add_one},
    {"blk.{}.ffn_gate", "model.layers.{}.mlp.gate_proj"},
    {"blk.{}.ffn_up", "model.layers.{}.mlp.up_proj"},
    {"blk.{}.ffn_down", "model.layers.{}.mlp.down_proj"},
    {"blk.{}.post_ffw_norm", "model.layers.{}.post_feedforward_layernorm", Change::add_one},
};

// Queries, keys and values are one matrix on both sides, and so are gate and up.
inline constexpr Row kPhi3[] = {
    {"token_embd", "model.embed_tokens"},
    {"output_norm", "model.norm"},
    {"output", "lm_head"},
    {"blk.{}.attn_norm", "model.layers.{}.input_layernorm"},
    {"blk.{}.attn_qkv", "model.layers.{}.self_attn.qkv_proj"},
    {"blk.{}.attn_output", "model.layers.{}.self_attn.o_proj"},
    {"blk.{}.ffn_norm", "model.layers.{}.post_attention_layernorm"},
    {"blk.{}.ffn_up", "model.layers.{}.mlp.gate_up_proj"},
    {"blk.{}.ffn_down", "model.layers.{}.mlp.down_proj"},
};

inline constexpr Row kGpt2[] = {
    {"token_embd", "transformer.wte"},
    {"position_embd", "transformer.wpe"},
    {"output_norm", "transformer.ln_f"},
    {"output", "lm_head"},
    {"blk.{}.attn_norm", "transformer.h.{}.ln_1"},
    {"blk.{}.attn_qkv", "transformer.h.{}.attn.c_attn", Change::transpose},
    {"blk.{}.attn_output", "transformer.h.{}.attn.c_proj", Change::transpose},
    {"blk.{}.ffn_norm", "transformer.h.{}.ln_2"},
    {"blk.{}.ffn_up", "transformer.h.{}.mlp.c_fc", Change::transpose},
    {"blk.{}.ffn_down", "transformer.h.{}.mlp.c_proj", Change::transpose},
};

// Prefixes inside a vision model, of older and newer versions of transformers; and without the head.
inline constexpr Prefix kModelPrefixes[] = {
    {"language_model.model.", "model."}, {"language_model.lm_head.", "lm_head."},  {"model.language_model.", "model."},
    {"layers.", "model.layers."},        {"embed_tokens.", "model.embed_tokens."}, {"norm.", "model.norm."},
};
inline constexpr Prefix kGpt2Prefixes[] = {
    {"h.", "transformer.h."},
    {"wte.", "transformer.wte."},
    {"wpe.", "transformer.wpe."},
    {"ln_f.", "transformer.ln_f."},
};

// Buffers that are computed anew, and an output matrix that is always the embedding.
inline constexpr std::string_view kRotary[] = {"model.layers.{}.self_attn.rotary_emb.inv_freq"};
inline constexpr std::string_view kRotaryAndHead[] = {kRotary[0], "lm_head.weight"};
inline constexpr std::string_view kMasks[] = {"transformer.h.{}.attn.bias", "transformer.h.{}.attn.masked_bias"};

// llama.cpp treats mistral as llama, except its third generation, which has its own name and the same tensors.
inline constexpr Architecture kArchitectures[] = {
    {"llama", "llama", kLlama, kModelPrefixes, kRotary},
    {"mistral", "llama", kLlama, kModelPrefixes, kRotary},
    {"mistral3", "mistral3", kLlama, kModelPrefixes, kRotary},
    {"qwen2", "qwen2", kQwen2, kModelPrefixes, kRotary},
    {"qwen3", "qwen3", kQwen3, kModelPrefixes, kRotary},
    {"gemma2", "gemma2", kGemma2, kModelPrefixes, kRotaryAndHead},
    {"gemma3", "gemma3", kGemma3, kModelPrefixes, kRotary},
    {"phi3", "phi3", kPhi3, kModelPrefixes, kRotary},
    {"gpt2", "gpt2", kGpt2, kGpt2Prefixes, kMasks},
};

}  // namespace ballast::names
