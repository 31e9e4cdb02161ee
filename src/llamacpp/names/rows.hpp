// The rows of every architecture, for tables.cpp. Rows that several architectures share come first.
#pragma once

#include "llamacpp/names/tables.hpp"

namespace ballast::names::rows {

inline constexpr Names whole = Names::whole;

// What nearly every decoder has: embedding, head, norms.
inline constexpr Row kEnds[] = {
    {"token_embd", "model.embed_tokens"},
    {"output_norm", "model.norm"},
    {"output", "lm_head"},
};
inline constexpr Row kNorms[] = {
    {"blk.{}.attn_norm", "model.layers.{}.input_layernorm"},
    {"blk.{}.ffn_norm", "model.layers.{}.post_attention_layernorm"},
};
inline constexpr Row kAttention[] = {
    {"blk.{}.attn_q", "model.layers.{}.self_attn.q_proj"},
    {"blk.{}.attn_k", "model.layers.{}.self_attn.k_proj"},
    {"blk.{}.attn_v", "model.layers.{}.self_attn.v_proj"},
    {"blk.{}.attn_output", "model.layers.{}.self_attn.o_proj"},
};
inline constexpr Row kQueryKeyNorms[] = {
    {"blk.{}.attn_q_norm", "model.layers.{}.self_attn.q_norm"},
    {"blk.{}.attn_k_norm", "model.layers.{}.self_attn.k_norm"},
};
inline constexpr Row kPermuted[] = {
    {"blk.{}.attn_q", "model.layers.{}.self_attn.q_proj", Change::permute_queries},
    {"blk.{}.attn_k", "model.layers.{}.self_attn.k_proj", Change::permute_keys},
};
inline constexpr Row kFeedForward[] = {
    {"blk.{}.ffn_gate", "model.layers.{}.mlp.gate_proj"},
    {"blk.{}.ffn_up", "model.layers.{}.mlp.up_proj"},
    {"blk.{}.ffn_down", "model.layers.{}.mlp.down_proj"},
};
// Gate and up are one matrix on both sides.
inline constexpr Row kFusedFeedForward[] = {
    {"blk.{}.ffn_up", "model.layers.{}.mlp.gate_up_proj"},
    {"blk.{}.ffn_down", "model.layers.{}.mlp.down_proj"},
};

// Experts, as matrices of their own or (newer versions of transformers) as stacks.
inline constexpr Row kExperts[] = {
    {"blk.{}.ffn_gate_inp", "model.layers.{}.mlp.gate"},
    {"blk.{}.ffn_down_exps", "model.layers.{}.mlp.experts.#.down_proj", Change::stack},
    {"blk.{}.ffn_gate_exps", "model.layers.{}.mlp.experts.#.gate_proj", Change::stack},
    {"blk.{}.ffn_up_exps", "model.layers.{}.mlp.experts.#.up_proj", Change::stack},
    {"blk.{}.ffn_down_exps.weight", "model.layers.{}.mlp.experts.down_proj", Change::none, whole},
    {"blk.{}.ffn_gate_exps.weight blk.{}.ffn_up_exps.weight", "model.layers.{}.mlp.experts.gate_up_proj",
     Change::split_halves, whole},
    {"blk.{}.ffn_down_exps", "model.layers.{}.mlp.experts.down_proj"},
    {"blk.{}.ffn_gate_exps blk.{}.ffn_up_exps", "model.layers.{}.mlp.experts.gate_up_proj", Change::split_halves},
};
inline constexpr Row kSharedExpert[] = {
    {"blk.{}.ffn_gate_shexp", "model.layers.{}.mlp.shared_expert.gate_proj"},
    {"blk.{}.ffn_up_shexp", "model.layers.{}.mlp.shared_expert.up_proj"},
    {"blk.{}.ffn_down_shexp", "model.layers.{}.mlp.shared_expert.down_proj"},
    {"blk.{}.ffn_gate_inp_shexp", "model.layers.{}.mlp.shared_expert_gate"},
};
inline constexpr Row kSharedExperts[] = {
    {"blk.{}.ffn_gate_shexp", "model.layers.{}.mlp.shared_experts.gate_proj"},
    {"blk.{}.ffn_up_shexp", "model.layers.{}.mlp.shared_experts.up_proj"},
    {"blk.{}.ffn_down_shexp", "model.layers.{}.mlp.shared_experts.down_proj"},
    {"blk.{}.exp_probs_b.bias", "model.layers.{}.mlp.gate.e_score_correction_bias", Change::none, whole},
};
inline constexpr Row kMixtralExperts[] = {
    {"blk.{}.ffn_gate_inp", "model.layers.{}.block_sparse_moe.gate"},
    {"blk.{}.ffn_gate_exps", "model.layers.{}.block_sparse_moe.experts.#.w1", Change::stack},
    {"blk.{}.ffn_down_exps", "model.layers.{}.block_sparse_moe.experts.#.w2", Change::stack},
    {"blk.{}.ffn_up_exps", "model.layers.{}.block_sparse_moe.experts.#.w3", Change::stack},
};

// Norms that are kept as differences from 1.
inline constexpr Row kGemmaNorms[] = {
    {"output_norm", "model.norm", Change::add_one},
    {"blk.{}.attn_norm", "model.layers.{}.input_layernorm", Change::add_one},
    {"blk.{}.ffn_norm", "model.layers.{}.post_attention_layernorm", Change::add_one},
};
inline constexpr Row kGemma2Norms[] = {
    {"output_norm", "model.norm", Change::add_one},
    {"blk.{}.attn_norm", "model.layers.{}.input_layernorm", Change::add_one},
    {"blk.{}.post_attention_norm", "model.layers.{}.post_attention_layernorm", Change::add_one},
    {"blk.{}.ffn_norm", "model.layers.{}.pre_feedforward_layernorm", Change::add_one},
    {"blk.{}.post_ffw_norm", "model.layers.{}.post_feedforward_layernorm", Change::add_one},
};
inline constexpr Row kGemma3Norms[] = {
    {"blk.{}.attn_q_norm", "model.layers.{}.self_attn.q_norm", Change::add_one},
    {"blk.{}.attn_k_norm", "model.layers.{}.self_attn.k_norm", Change::add_one},
};

inline constexpr Row kPhi2[] = {
    {"output_norm", "model.final_layernorm"},
    {"blk.{}.attn_output", "model.layers.{}.self_attn.dense"},
    {"blk.{}.ffn_up", "model.layers.{}.mlp.fc1"},
    {"blk.{}.ffn_down", "model.layers.{}.mlp.fc2"},
};
inline constexpr Row kPhi3[] = {
    {"blk.{}.attn_qkv", "model.layers.{}.self_attn.qkv_proj"},
    {"blk.{}.attn_output", "model.layers.{}.self_attn.o_proj"},
};
inline constexpr Row kStarcoder2[] = {
    {"blk.{}.ffn_up", "model.layers.{}.mlp.c_fc"},
    {"blk.{}.ffn_down", "model.layers.{}.mlp.c_proj"},
};
inline constexpr Row kStablelm[] = {
    {"blk.{}.attn_q_norm", "model.layers.{}.self_attn.q_layernorm.norms.#", Change::stack},
    {"blk.{}.attn_k_norm", "model.layers.{}.self_attn.k_layernorm.norms.#", Change::stack},
};
inline constexpr Row kOlmo2Norms[] = {
    {"blk.{}.post_attention_norm", "model.layers.{}.post_attention_layernorm"},
    {"blk.{}.post_ffw_norm", "model.layers.{}.post_feedforward_layernorm"},
};
inline constexpr Row kPostAttentionNorm[] = {
    {"blk.{}.attn_norm", "model.layers.{}.input_layernorm"},
    {"blk.{}.post_attention_norm", "model.layers.{}.post_attention_layernorm"},
};
inline constexpr Row kGlm4Norms[] = {
    {"blk.{}.attn_norm", "model.layers.{}.input_layernorm"},
    {"blk.{}.post_attention_norm", "model.layers.{}.post_self_attn_layernorm"},
    {"blk.{}.ffn_norm", "model.layers.{}.post_attention_layernorm"},
    {"blk.{}.post_ffw_norm", "model.layers.{}.post_mlp_layernorm"},
};
// The block that predicts a further token.
inline constexpr Row kNextToken[] = {
    {"blk.{}.nextn.eh_proj", "model.layers.{}.eh_proj"},
    {"blk.{}.nextn.embed_tokens", "model.layers.{}.embed_tokens"},
    {"blk.{}.nextn.enorm", "model.layers.{}.enorm"},
    {"blk.{}.nextn.hnorm", "model.layers.{}.hnorm"},
    {"blk.{}.nextn.shared_head_head", "model.layers.{}.shared_head.head"},
    {"blk.{}.nextn.shared_head_norm", "model.layers.{}.shared_head.norm"},
};
inline constexpr Row kGraniteMoe[] = {
    {"blk.{}.ffn_gate_exps blk.{}.ffn_up_exps", "model.layers.{}.block_sparse_moe.input_linear", Change::split_halves},
    {"blk.{}.ffn_down_exps", "model.layers.{}.block_sparse_moe.output_linear"},
    {"blk.{}.ffn_gate_inp", "model.layers.{}.block_sparse_moe.router.layer"},
    {"blk.{}.ffn_gate_shexp blk.{}.ffn_up_shexp", "model.layers.{}.shared_mlp.input_linear", Change::split_halves},
    {"blk.{}.ffn_down_shexp", "model.layers.{}.shared_mlp.output_linear"},
};
inline constexpr Row kInternlm2[] = {
    {"token_embd", "model.tok_embeddings"},
    {"output_norm", "model.norm"},
    {"output", "output"},
    {"blk.{}.attn_norm", "model.layers.{}.attention_norm"},
    {"blk.{}.attn_q blk.{}.attn_k blk.{}.attn_v", "model.layers.{}.attention.wqkv", Change::split_groups},
    {"blk.{}.attn_output", "model.layers.{}.attention.wo"},
    {"blk.{}.ffn_norm", "model.layers.{}.ffn_norm"},
    {"blk.{}.ffn_gate", "model.layers.{}.feed_forward.w1"},
    {"blk.{}.ffn_up", "model.layers.{}.feed_forward.w3"},
    {"blk.{}.ffn_down", "model.layers.{}.feed_forward.w2"},
};
inline constexpr Row kDeepseek2[] = {
    {"blk.{}.attn_q", "model.layers.{}.self_attn.q_proj"},
    {"blk.{}.attn_q_a", "model.layers.{}.self_attn.q_a_proj"},
    {"blk.{}.attn_q_a_norm", "model.layers.{}.self_attn.q_a_layernorm"},
    {"blk.{}.attn_q_b", "model.layers.{}.self_attn.q_b_proj"},
    {"blk.{}.attn_kv_a_mqa", "model.layers.{}.self_attn.kv_a_proj_with_mqa"},
    {"blk.{}.attn_kv_a_norm", "model.layers.{}.self_attn.kv_a_layernorm"},
    {"blk.{}.attn_k_b blk.{}.attn_v_b", "model.layers.{}.self_attn.kv_b_proj", Change::split_latent},
    {"blk.{}.attn_output", "model.layers.{}.self_attn.o_proj"},
};
inline constexpr Row kGptOss[] = {
    {"blk.{}.attn_sinks.weight", "model.layers.{}.self_attn.sinks", Change::none, whole},
    {"blk.{}.ffn_gate_inp", "model.layers.{}.mlp.router"},
    {"blk.{}.ffn_down_exps.weight",
     "model.layers.{}.mlp.experts.down_proj_blocks model.layers.{}.mlp.experts.down_proj_scales", Change::mxfp4, whole},
    {"blk.{}.ffn_gate_exps.weight blk.{}.ffn_up_exps.weight",
     "model.layers.{}.mlp.experts.gate_up_proj_blocks model.layers.{}.mlp.experts.gate_up_proj_scales",
     Change::mxfp4_alternating, whole},
    {"blk.{}.ffn_down_exps.weight", "model.layers.{}.mlp.experts.down_proj", Change::transpose_each, whole},
    {"blk.{}.ffn_gate_exps.weight blk.{}.ffn_up_exps.weight", "model.layers.{}.mlp.experts.gate_up_proj",
     Change::split_transposed, whole},
    {"blk.{}.ffn_down_exps.bias", "model.layers.{}.mlp.experts.down_proj_bias", Change::none, whole},
    {"blk.{}.ffn_gate_exps.bias blk.{}.ffn_up_exps.bias", "model.layers.{}.mlp.experts.gate_up_proj_bias",
     Change::split_alternating, whole},
};

// Three of four blocks of qwen3next have a linear attention.
inline constexpr Row kQwen3nextNorms[] = {
    {"output_norm", "model.norm", Change::add_one},
    {"blk.{}.attn_norm", "model.layers.{}.input_layernorm", Change::add_one},
    {"blk.{}.post_attention_norm", "model.layers.{}.post_attention_layernorm", Change::add_one},
    {"blk.{}.attn_q_norm", "model.layers.{}.self_attn.q_norm", Change::add_one},
    {"blk.{}.attn_k_norm", "model.layers.{}.self_attn.k_norm", Change::add_one},
    {"blk.{}.ssm_norm", "model.layers.{}.linear_attn.norm"},
};
inline constexpr Row kQwen3next[] = {
    {"blk.{}.attn_qkv blk.{}.attn_gate", "model.layers.{}.linear_attn.in_proj_qkvz", Change::split_qkvz},
    {"blk.{}.ssm_ba", "model.layers.{}.linear_attn.in_proj_ba"},
    {"blk.{}.ssm_conv1d", "model.layers.{}.linear_attn.conv1d", Change::squeeze},
    {"blk.{}.ssm_a", "model.layers.{}.linear_attn.A_log", Change::negated_exponential, whole},
    {"blk.{}.ssm_dt.bias", "model.layers.{}.linear_attn.dt_bias", Change::none, whole},
    {"blk.{}.ssm_out", "model.layers.{}.linear_attn.out_proj"},
};
inline constexpr Row kQwen35[] = {
    {"blk.{}.attn_qkv", "model.layers.{}.linear_attn.in_proj_qkv", Change::tile_values_of_qkv},
    {"blk.{}.attn_gate", "model.layers.{}.linear_attn.in_proj_z", Change::tile_values},
    {"blk.{}.ssm_alpha", "model.layers.{}.linear_attn.in_proj_a", Change::tile_values},
    {"blk.{}.ssm_beta", "model.layers.{}.linear_attn.in_proj_b", Change::tile_values},
    {"blk.{}.ssm_conv1d", "model.layers.{}.linear_attn.conv1d", Change::tile_values_of_conv},
    {"blk.{}.ssm_a", "model.layers.{}.linear_attn.A_log", Change::tile_value_logs, whole},
    {"blk.{}.ssm_dt.bias", "model.layers.{}.linear_attn.dt_bias", Change::tile_values, whole},
    {"blk.{}.ssm_out", "model.layers.{}.linear_attn.out_proj", Change::tile_value_columns},
};
// These stand outside of mtp.layers, and belong to the first block there.
inline constexpr Row kMtp[] = {
    {"blk.{}.nextn.eh_proj", "mtp.fc"},
    {"blk.{}.nextn.enorm", "mtp.pre_fc_norm_embedding", Change::add_one},
    {"blk.{}.nextn.hnorm", "mtp.pre_fc_norm_hidden", Change::add_one},
    {"blk.{}.nextn.shared_head_norm", "mtp.norm", Change::add_one},
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
inline constexpr Row kStarcoder[] = {
    {"token_embd", "transformer.wte"},
    {"position_embd", "transformer.wpe"},
    {"output_norm", "transformer.ln_f"},
    {"output", "lm_head"},
    {"blk.{}.attn_norm", "transformer.h.{}.ln_1"},
    {"blk.{}.attn_qkv", "transformer.h.{}.attn.c_attn"},
    {"blk.{}.attn_output", "transformer.h.{}.attn.c_proj"},
    {"blk.{}.ffn_norm", "transformer.h.{}.ln_2"},
    {"blk.{}.ffn_up", "transformer.h.{}.mlp.c_fc"},
    {"blk.{}.ffn_down", "transformer.h.{}.mlp.c_proj"},
};
inline constexpr Row kGptNeox[] = {
    {"token_embd", "gpt_neox.embed_in"},
    {"output_norm", "gpt_neox.final_layer_norm"},
    {"output", "embed_out"},
    {"blk.{}.attn_norm", "gpt_neox.layers.{}.input_layernorm"},
    {"blk.{}.attn_qkv", "gpt_neox.layers.{}.attention.query_key_value", Change::qkv_of_heads},
    {"blk.{}.attn_output", "gpt_neox.layers.{}.attention.dense"},
    {"blk.{}.ffn_norm", "gpt_neox.layers.{}.post_attention_layernorm"},
    {"blk.{}.ffn_up", "gpt_neox.layers.{}.mlp.dense_h_to_4h"},
    {"blk.{}.ffn_down", "gpt_neox.layers.{}.mlp.dense_4h_to_h"},
};
// The 40B model has two norms before its block.
inline constexpr Row kFalcon[] = {
    {"token_embd", "transformer.word_embeddings"},
    {"output_norm", "transformer.ln_f"},
    {"output", "lm_head"},
    {"blk.{}.attn_norm", "transformer.h.{}.input_layernorm"},
    {"blk.{}.attn_norm", "transformer.h.{}.ln_mlp"},
    {"blk.{}.attn_norm_2", "transformer.h.{}.ln_attn"},
    {"blk.{}.attn_qkv", "transformer.h.{}.self_attention.query_key_value", Change::qkv_of_groups},
    {"blk.{}.attn_output", "transformer.h.{}.self_attention.dense"},
    {"blk.{}.ffn_up", "transformer.h.{}.mlp.dense_h_to_4h"},
    {"blk.{}.ffn_down", "transformer.h.{}.mlp.dense_4h_to_h"},
};
inline constexpr Row kLfm2[] = {
    {"token_embd", "model.embed_tokens"},
    {"token_embd_norm", "model.embedding_norm"},
    {"output", "lm_head"},
    {"blk.{}.attn_norm", "model.layers.{}.operator_norm"},
    {"blk.{}.shortconv.in_proj", "model.layers.{}.conv.in_proj"},
    {"blk.{}.shortconv.conv", "model.layers.{}.conv.conv", Change::squeeze},
    {"blk.{}.shortconv.out_proj", "model.layers.{}.conv.out_proj"},
    {"blk.{}.attn_q_norm", "model.layers.{}.self_attn.q_layernorm"},
    {"blk.{}.attn_k_norm", "model.layers.{}.self_attn.k_layernorm"},
    {"blk.{}.attn_output", "model.layers.{}.self_attn.out_proj"},
    {"blk.{}.ffn_norm", "model.layers.{}.ffn_norm"},
    {"blk.{}.ffn_gate", "model.layers.{}.feed_forward.w1"},
    {"blk.{}.ffn_up", "model.layers.{}.feed_forward.w3"},
    {"blk.{}.ffn_down", "model.layers.{}.feed_forward.w2"},
};
inline constexpr Row kMamba[] = {
    {"token_embd", "backbone.embeddings"},
    {"output_norm", "backbone.norm_f"},
    {"output", "lm_head"},
    {"blk.{}.attn_norm", "backbone.layers.{}.norm"},
    {"blk.{}.ssm_in", "backbone.layers.{}.mixer.in_proj"},
    {"blk.{}.ssm_conv1d", "backbone.layers.{}.mixer.conv1d", Change::squeeze},
    {"blk.{}.ssm_x", "backbone.layers.{}.mixer.x_proj"},
    {"blk.{}.ssm_dt", "backbone.layers.{}.mixer.dt_proj"},
    {"blk.{}.ssm_a", "backbone.layers.{}.mixer.A_log", Change::negated_exponential, whole},
    {"blk.{}.ssm_d", "backbone.layers.{}.mixer.D", Change::none, whole},
    {"blk.{}.ssm_out", "backbone.layers.{}.mixer.out_proj"},
};

inline constexpr Row kBert[] = {
    {"token_embd", "embeddings.word_embeddings"},
    {"position_embd", "embeddings.position_embeddings"},
    {"token_types", "embeddings.token_type_embeddings"},
    {"token_embd_norm", "embeddings.LayerNorm"},
    {"blk.{}.attn_q", "encoder.layer.{}.attention.self.query"},
    {"blk.{}.attn_k", "encoder.layer.{}.attention.self.key"},
    {"blk.{}.attn_v", "encoder.layer.{}.attention.self.value"},
    {"blk.{}.attn_output", "encoder.layer.{}.attention.output.dense"},
    {"blk.{}.attn_output_norm", "encoder.layer.{}.attention.output.LayerNorm"},
    {"blk.{}.ffn_up", "encoder.layer.{}.intermediate.dense"},
    {"blk.{}.ffn_down", "encoder.layer.{}.output.dense"},
    {"blk.{}.layer_output_norm", "encoder.layer.{}.output.LayerNorm"},
    {"cls", "classifier.dense"},
    {"cls.output", "classifier.out_proj"},
    {"cls", "classifier"},
    {"cls", "pre_classifier"},
};
inline constexpr Row kDistilbert[] = {
    {"blk.{}.attn_q", "transformer.layer.{}.attention.q_lin"},
    {"blk.{}.attn_k", "transformer.layer.{}.attention.k_lin"},
    {"blk.{}.attn_v", "transformer.layer.{}.attention.v_lin"},
    {"blk.{}.attn_output", "transformer.layer.{}.attention.out_lin"},
    {"blk.{}.attn_output_norm", "transformer.layer.{}.sa_layer_norm"},
    {"blk.{}.ffn_up", "transformer.layer.{}.ffn.lin1"},
    {"blk.{}.ffn_down", "transformer.layer.{}.ffn.lin2"},
    {"blk.{}.layer_output_norm", "transformer.layer.{}.output_layer_norm"},
};
inline constexpr Row kJinaBert[] = {
    {"blk.{}.attn_q_norm", "encoder.layer.{}.attention.self.layer_norm_q"},
    {"blk.{}.attn_k_norm", "encoder.layer.{}.attention.self.layer_norm_k"},
    {"blk.{}.attn_norm_2", "encoder.layer.{}.layer_norm_1"},
    {"blk.{}.ffn_up", "encoder.layer.{}.mlp.gated_layers"},
    {"blk.{}.ffn_up", "encoder.layer.{}.mlp.up_gated_layer"},
    {"blk.{}.ffn_gate", "encoder.layer.{}.mlp.gated_layers_w"},
    {"blk.{}.ffn_up", "encoder.layer.{}.mlp.gated_layers_v"},
    {"blk.{}.ffn_down", "encoder.layer.{}.mlp.wo"},
    {"blk.{}.ffn_down", "encoder.layer.{}.mlp.down_layer"},
    {"blk.{}.layer_output_norm", "encoder.layer.{}.mlp.layernorm"},
    {"blk.{}.layer_output_norm", "encoder.layer.{}.layer_norm_2"},
};
inline constexpr Row kNomicBert[] = {
    {"token_embd", "embeddings.word_embeddings"},
    {"token_types", "embeddings.token_type_embeddings"},
    {"token_embd_norm", "emb_ln"},
    {"blk.{}.attn_qkv", "encoder.layers.{}.attn.Wqkv"},
    {"blk.{}.attn_output", "encoder.layers.{}.attn.out_proj"},
    {"blk.{}.attn_output_norm", "encoder.layers.{}.norm1"},
    {"blk.{}.ffn_up", "encoder.layers.{}.mlp.fc11"},
    {"blk.{}.ffn_gate", "encoder.layers.{}.mlp.fc12"},
    {"blk.{}.ffn_down", "encoder.layers.{}.mlp.fc2"},
    {"blk.{}.layer_output_norm", "encoder.layers.{}.norm2"},
};
inline constexpr Row kNomicBertMoe[] = {
    {"blk.{}.ffn_up", "encoder.layers.{}.mlp.fc1"},
    {"blk.{}.ffn_gate_inp", "encoder.layers.{}.mlp.router.layer"},
    {"blk.{}.ffn_up_exps.weight", "encoder.layers.{}.mlp.experts.mlp.w1", Change::stack_rows, whole},
    {"blk.{}.ffn_down_exps.weight", "encoder.layers.{}.mlp.experts.mlp.w2", Change::stack_transposed, whole},
};
inline constexpr Row kModernBert[] = {
    {"token_embd", "embeddings.tok_embeddings"},
    {"token_embd_norm", "embeddings.norm"},
    {"output_norm", "final_norm"},
    {"blk.{}.attn_norm", "layers.{}.attn_norm"},
    {"blk.{}.attn_qkv", "layers.{}.attn.Wqkv"},
    {"blk.{}.attn_output", "layers.{}.attn.Wo"},
    {"blk.{}.ffn_norm", "layers.{}.mlp_norm"},
    {"blk.{}.ffn_up", "layers.{}.mlp.Wi"},
    {"blk.{}.ffn_down", "layers.{}.mlp.Wo"},
    {"cls", "head.dense"},
    {"cls.norm", "head.norm"},
    {"cls.output", "classifier.out_proj"},
    {"cls", "classifier"},
};

inline constexpr Row kT5[] = {
    {"token_embd", "shared"},
    {"token_embd", "encoder.embed_tokens"},
    {"token_embd", "decoder.embed_tokens"},
    {"output", "lm_head"},
    {"enc.output_norm", "encoder.final_layer_norm"},
    {"enc.blk.{}.attn_norm", "encoder.block.{}.layer.0.layer_norm"},
    {"enc.blk.{}.attn_q", "encoder.block.{}.layer.0.SelfAttention.q"},
    {"enc.blk.{}.attn_k", "encoder.block.{}.layer.0.SelfAttention.k"},
    {"enc.blk.{}.attn_v", "encoder.block.{}.layer.0.SelfAttention.v"},
    {"enc.blk.{}.attn_o", "encoder.block.{}.layer.0.SelfAttention.o"},
    {"enc.blk.{}.attn_rel_b", "encoder.block.{}.layer.0.SelfAttention.relative_attention_bias"},
    {"enc.blk.{}.ffn_norm", "encoder.block.{}.layer.1.layer_norm"},
    {"enc.blk.{}.ffn_gate", "encoder.block.{}.layer.1.DenseReluDense.wi_0"},
    {"enc.blk.{}.ffn_up", "encoder.block.{}.layer.1.DenseReluDense.wi_1"},
    {"enc.blk.{}.ffn_up", "encoder.block.{}.layer.1.DenseReluDense.wi"},
    {"enc.blk.{}.ffn_down", "encoder.block.{}.layer.1.DenseReluDense.wo"},
    {"dec.output_norm", "decoder.final_layer_norm"},
    {"dec.blk.{}.attn_norm", "decoder.block.{}.layer.0.layer_norm"},
    {"dec.blk.{}.attn_q", "decoder.block.{}.layer.0.SelfAttention.q"},
    {"dec.blk.{}.attn_k", "decoder.block.{}.layer.0.SelfAttention.k"},
    {"dec.blk.{}.attn_v", "decoder.block.{}.layer.0.SelfAttention.v"},
    {"dec.blk.{}.attn_o", "decoder.block.{}.layer.0.SelfAttention.o"},
    {"dec.blk.{}.attn_rel_b", "decoder.block.{}.layer.0.SelfAttention.relative_attention_bias"},
    {"dec.blk.{}.cross_attn_norm", "decoder.block.{}.layer.1.layer_norm"},
    {"dec.blk.{}.cross_attn_q", "decoder.block.{}.layer.1.EncDecAttention.q"},
    {"dec.blk.{}.cross_attn_k", "decoder.block.{}.layer.1.EncDecAttention.k"},
    {"dec.blk.{}.cross_attn_v", "decoder.block.{}.layer.1.EncDecAttention.v"},
    {"dec.blk.{}.cross_attn_o", "decoder.block.{}.layer.1.EncDecAttention.o"},
    {"dec.blk.{}.cross_attn_rel_b", "decoder.block.{}.layer.1.EncDecAttention.relative_attention_bias"},
    {"dec.blk.{}.ffn_norm", "decoder.block.{}.layer.2.layer_norm"},
    {"dec.blk.{}.ffn_gate", "decoder.block.{}.layer.2.DenseReluDense.wi_0"},
    {"dec.blk.{}.ffn_up", "decoder.block.{}.layer.2.DenseReluDense.wi_1"},
    {"dec.blk.{}.ffn_up", "decoder.block.{}.layer.2.DenseReluDense.wi"},
    {"dec.blk.{}.ffn_down", "decoder.block.{}.layer.2.DenseReluDense.wo"},
};

}  // namespace ballast::names::rows
