#include "llamacpp/back/finish.hpp"

#include <algorithm>
#include <utility>

#include "llamacpp/config/json_values.hpp"

namespace ballast::llamacpp::back {
namespace {

// Only every so-manieth block sees everything; the others are of another kind.
Json kinds_of_blocks(std::uint64_t blocks, std::uint64_t interval, std::string_view others) {
  constexpr std::uint64_t kMostBlocks = 1 << 16;
  if (interval == 0 || blocks > kMostBlocks) return {};
  Json::List kinds;
  for (std::uint64_t i = 1; i <= blocks; ++i) kinds.emplace_back(i % interval == 0 ? "full_attention" : others);
  return kinds;
}

void add_token_types(BackModel& model) {
  if (const auto rows = model.facts.rows("token_types.weight")) model.set("type_vocab_size", *rows);
}

}  // namespace

void finish_bert(BackModel& model) { add_token_types(model); }

std::uint64_t first_position(const GgufFacts& facts) {
  constexpr std::uint64_t kUsualPadding = 1, kMostPadding = 1 << 20;
  const std::uint64_t padding = facts.count("tokenizer.ggml.padding_token_id").value_or(kUsualPadding);
  return (padding < kMostPadding ? padding : kUsualPadding) + 1;
}

void finish_roberta(BackModel& model) {
  add_token_types(model);
  const std::uint64_t first = first_position(model.facts);
  model.set("pad_token_id", first - 1);
  if (const auto length = model.facts.count("context_length")) model.set("max_position_embeddings", *length + first);
}

void finish_jina(BackModel& model) {
  add_token_types(model);
  const bool has_gate = model.facts.has_ending(".ffn_gate.weight");
  // One matrix with both halves is gated, too.
  const auto up = model.facts.rows("blk.0.ffn_up.weight"), length = model.facts.count("feed_forward_length");
  const bool is_gated = has_gate || (up && length && *up == 2 * *length);
  model.set("feed_forward_type", is_gated ? "geglu" : "original");
}

// The keys say what the models were trained on.
void finish_nomic(BackModel& model) {
  add_token_types(model);
  const auto length = model.facts.count("context_length");
  if (length == 2048) model.set("n_positions", 8192);
  if (length == 512) model.set("n_positions", 2048);
}

// The keys have one head for all queries, since keys and values are compressed.
void finish_deepseek(BackModel& model) {
  model.set("num_key_value_heads", model.facts.value("attention.head_count"));
  model.set_null_unless_said("q_lora_rank");
  const bool is_v3 = model.of.model_type == "deepseek_v3";
  if (is_v3 && model.config.find("scoring_func") == nullptr) model.set("scoring_func", "sigmoid");
  for (const std::string_view name : {"n_group", "topk_group"}) {
    if (is_v3 && model.config.find(name) == nullptr) model.set(name, 1);
  }
  if (model.config.find("norm_topk_prob") == nullptr) model.set("norm_topk_prob", false);
  const auto groups = whole_number(model.config.find("n_group"));
  if (!is_v3) model.set("topk_method", groups && *groups > 1 ? "group_limited_greedy" : "greedy");
}

void finish_falcon(BackModel& model) {
  const auto heads = model.facts.count("attention.head_count"), keys = model.facts.count("attention.head_count_kv");
  const bool has_two_norms = model.facts.has_ending(".attn_norm_2.weight");
  const bool has_groups = heads && keys && *keys > 1 && *keys < *heads;
  model.set("multi_query", keys == 1);
  model.set("new_decoder_architecture", has_two_norms || has_groups);
  if (has_groups && !has_two_norms) model.set("num_ln_in_parallel_attn", 1);
}

// llama.cpp knows the largest model by its blocks, and scales queries by the size of a head in all others.
void finish_gemma(BackModel& model) {
  const std::uint64_t largest = model.facts.architecture() == "gemma2" ? 46 : 62;
  const auto heads = model.facts.count("attention.head_count"), size = model.facts.count("embedding_length");
  const bool is_largest = model.facts.main_blocks() == largest && heads && size && *heads != 0;
  model.set("query_pre_attn_scalar", is_largest ? Json(*size / *heads) : model.facts.value("attention.key_length"));
  const bool has_windows = model.facts.count("attention.sliding_window").value_or(0) > 0;
  if (model.facts.architecture() == "gemma3" && !has_windows) model.set("sliding_window_pattern", 1);
}

void finish_glm4moe(BackModel& model) { model.set("num_nextn_predict_layers", model.facts.guessing_blocks()); }

// Blocks without heads of keys convolve.
void finish_lfm2(BackModel& model) {
  const Json heads = model.facts.value("attention.head_count_kv");
  if (!heads.is_list()) return;
  Json::List kinds;
  std::int64_t most = 0;
  for (const Json& head : heads.list()) {
    const std::int64_t count = whole_number(&head).value_or(0);
    most = std::max(most, count);
    kinds.emplace_back(count == 0 ? "conv" : "full_attention");
  }
  model.set("num_key_value_heads", most);
  model.set("layer_types", std::move(kinds));
}

void finish_qwen3next(BackModel& model) {
  const auto interval = model.facts.count("full_attention_interval");
  model.set("layer_types", kinds_of_blocks(model.facts.main_blocks(), interval.value_or(4), "linear_attention"));
}

void finish_qwen35(BackModel& model) {
  finish_qwen3next(model);
  model.set("mtp_num_hidden_layers", model.facts.guessing_blocks());
}

void finish_t5(BackModel& model) {
  model.set("feed_forward_proj", model.facts.has("enc.blk.0.ffn_gate.weight") ? "gated-gelu" : "relu");
}

}  // namespace ballast::llamacpp::back
