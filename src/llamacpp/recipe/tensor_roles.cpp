#include "llamacpp/recipe/tensor_roles.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace ballast::llamacpp {
namespace {

struct RoleName {
  std::string_view part;
  Role role;
};
// The first part that a name contains counts.
constexpr std::array kRoleNames = {
    RoleName{"attn_qkv.weight", Role::attention_values},
    RoleName{"attn_kv_b.weight", Role::attention_values},
    RoleName{"attn_v.weight", Role::attention_values},
    RoleName{"attn_k.weight", Role::attention_keys},
    RoleName{"attn_q.weight", Role::attention_queries},
    RoleName{"attn_output.weight", Role::attention_output},
    RoleName{"ffn_up", Role::ffn_up},
    RoleName{"ffn_gate", Role::ffn_gate},
    RoleName{"ffn_down", Role::ffn_down},
};

// Small or sensitive tensors: llama-quantize leaves those alone whose names contain one of these parts.
constexpr std::array<std::string_view, 35> kLeftAlone = {
    "_norm.weight",
    "ffn_gate_inp.weight",
    "ffn_gate_tid2eid.weight",
    "altup",
    "laurel",
    "per_layer_model_proj",
    "ssm_conv1d",
    "shortconv.conv.weight",
    "indexer.k_proj.weight",
    "indexer.q_proj.weight",
    "time_mix_first.weight",
    "time_mix_w0.weight",
    "time_mix_w1.weight",
    "time_mix_w2.weight",
    "time_mix_v0.weight",
    "time_mix_v1.weight",
    "time_mix_v2.weight",
    "time_mix_a0.weight",
    "time_mix_a1.weight",
    "time_mix_a2.weight",
    "time_mix_g1.weight",
    "time_mix_g2.weight",
    "time_mix_decay_w1.weight",
    "time_mix_decay_w2.weight",
    "time_mix_lerp_fused.weight",
    "attn_rel_b.weight",
    ".position_embd",
    "sam.pos_embd",
    "sam.neck.",
    "sam.net_",
    ".rel_pos",
    ".patch_embd",
    ".patch_merger",
    "a.rvq.codebook",
    "mm.a.code_embd",
};

// These stay whatever they are, too. The converter writes them as F32.
constexpr std::array<std::string_view, 2> kWholeNames = {"position_embd.weight", "token_types.weight"};
constexpr std::array<std::string_view, 2> kTowers = {"v.position_embd.weight", "a.position_embd.weight"};

// The converter writes these as F32 in every block.
constexpr std::array<std::string_view, 15> kF32InBlocks = {
    "ffn_gate_inp.weight",        "ffn_gate_inp_shexp.weight", "ssm_conv1d.weight",         "ssm_conv1d_q.weight",
    "ssm_conv1d_k.weight",        "ssm_conv1d_v.weight",       "shortconv.conv.weight",     "time_mix_first.weight",
    "time_mix_w1.weight",         "time_mix_w2.weight",        "time_mix_decay_w1.weight",  "time_mix_decay_w2.weight",
    "time_mix_lerp_fused.weight", "altup_correct_coef.weight", "altup_predict_coef.weight",
};

template <class Names>
bool contains_any(std::string_view name, const Names& parts) noexcept {
  return std::ranges::any_of(parts, [&](std::string_view part) { return name.find(part) != name.npos; });
}

template <class Names>
bool is_any(std::string_view name, const Names& names) noexcept {
  return std::ranges::find(names, name) != names.end();
}

constexpr std::string_view kBlock = "blk.";

// The name without "blk.7."; empty if it belongs to no block.
std::string_view in_block(std::string_view name) noexcept {
  if (block_of(name) < 0) return {};
  const std::size_t dot = name.find('.', kBlock.size());
  return dot == name.npos ? std::string_view{} : name.substr(dot + 1);
}

}  // namespace

Role role_of(std::string_view name) noexcept {
  if (name == "output.weight") return Role::output;
  if (name == "token_embd.weight" || name == "per_layer_token_embd.weight") return Role::embedding;
  for (const RoleName& row : kRoleNames) {
    if (name.find(row.part) != name.npos) return row.role;
  }
  return Role::other;
}

std::int64_t block_of(std::string_view name) noexcept {
  if (!name.starts_with(kBlock)) return -1;
  std::uint32_t number = 0;
  const char* const end = name.data() + name.size();
  return std::from_chars(name.data() + kBlock.size(), end, number).ec == std::errc() ? std::int64_t{number} : -1;
}

bool is_written_before(std::string_view a, std::string_view b) noexcept {
  const std::int64_t block_a = block_of(a), block_b = block_of(b);
  return block_a != block_b ? block_a < block_b : a < b;
}

std::size_t ggml_rank(const Shape& shape) noexcept {
  std::size_t rank = shape.rank();
  for (std::size_t i = 0; rank > 1 && shape[i] == 1; ++i) --rank;
  return rank;
}

std::uint64_t columns_of(const Shape& shape) noexcept { return shape.empty() ? 1 : shape[shape.rank() - 1]; }

std::uint64_t matrices_of(const Shape& shape) noexcept { return shape.rank() < 3 ? 1 : shape[shape.rank() - 3]; }

bool is_quantized(std::string_view name, const Shape& shape) noexcept {
  return ggml_rank(shape) >= 2 && name.ends_with("weight") && !contains_any(name, kLeftAlone) &&
         !is_any(name, kWholeNames);
}

bool is_always_f32(std::string_view name, const Shape& shape, std::string_view architecture) noexcept {
  if (shape.rank() <= 1 || name.ends_with("_norm.weight")) return true;
  if (architecture == "dbrx") return false;
  if (!name.ends_with(".weight") && !name.ends_with(".lora_a") && !name.ends_with(".lora_b")) return true;
  if (is_any(name, kWholeNames) || is_any(name, kTowers)) return true;
  const std::string_view part = in_block(name);
  if (part == "indexer.proj.weight" || (architecture == "minimax-m3" && part.starts_with("indexer."))) return true;
  const bool is_posnet_norm = name.ends_with(".norm1.weight") || name.ends_with(".norm2.weight");
  return is_any(part, kF32InBlocks) || (name.starts_with("posnet.") && is_posnet_norm);
}

}  // namespace ballast::llamacpp
