#include "llamacpp/needed_tensors.hpp"

#include <algorithm>
#include <string>

namespace ballast::llamacpp {
namespace {

using Roles = std::string_view;

constexpr Roles kAttention = "attn_q|attn_qkv attn_k|attn_qkv attn_v|attn_qkv attn_output";
constexpr Roles kHeadNorms = "attn_q_norm attn_k_norm";
constexpr Roles kNorms = "attn_norm ffn_norm|post_attention_norm";
constexpr Roles kOneNorm = "attn_norm";
constexpr Roles kNormsBehind = "post_attention_norm post_ffw_norm";
constexpr Roles kNormsBehindEncoder = "attn_output_norm layer_output_norm";
constexpr Roles kUpDown =
    "ffn_up|ffn_up_exps|ffn_up.0|ffn_gate_up_exps "
    "ffn_down|ffn_down_exps|ffn_down.0";
constexpr Roles kGate = "ffn_gate|ffn_gate_exps|ffn_gate.0|ffn_gate_up_exps";
constexpr Roles kLatentAttention =
    "attn_q|attn_q_a attn_kv_a_mqa attn_kv_a_norm attn_k_b|attn_kv_b attn_v_b|attn_kv_b attn_output";
constexpr Roles kAttentionOrConvolution = "attn_q|shortconv.in_proj attn_output|shortconv.out_proj";
constexpr Roles kAttentionOrStates = "attn_q|attn_qkv attn_output|ssm_out";
constexpr Roles kStates = "ssm_in ssm_conv1d ssm_x ssm_dt ssm_out";

constexpr Roles kUsual[] = {kNorms, kAttention, kGate, kUpDown};
constexpr Roles kWithHeadNorms[] = {kNorms, kAttention, kHeadNorms, kGate, kUpDown};
constexpr Roles kWithoutGate[] = {kNorms, kAttention, kUpDown};
constexpr Roles kParallel[] = {kOneNorm, kAttention, kGate, kUpDown};
constexpr Roles kParallelWithoutGate[] = {kOneNorm, kAttention, kUpDown};
constexpr Roles kWithoutNorms[] = {kAttention, kGate, kUpDown};
constexpr Roles kGemma2[] = {kNorms, kNormsBehind, kAttention, kGate, kUpDown};
constexpr Roles kGemma3[] = {kNorms, kNormsBehind, kAttention, kHeadNorms, kGate, kUpDown};
constexpr Roles kOlmo2[] = {kNormsBehind, kAttention, kHeadNorms, kGate, kUpDown};
constexpr Roles kGlm4[] = {kNorms, kNormsBehind, kAttention, kUpDown};
constexpr Roles kDeepseek2[] = {kNorms, kLatentAttention, kGate, kUpDown};
constexpr Roles kLfm2[] = {kNorms, kAttentionOrConvolution, kGate, kUpDown};
constexpr Roles kQwen3next[] = {kNorms, kAttentionOrStates, kGate, kUpDown};
constexpr Roles kMamba[] = {kOneNorm, kStates};
constexpr Roles kBert[] = {kAttention, kNormsBehindEncoder, kUpDown};
constexpr Roles kModernBert[] = {"attn_qkv attn_output ffn_norm", kUpDown};  // its first block has no other norm

constexpr std::string_view kEmbeddingOnly = "token_embd";
constexpr std::string_view kEmbeddingWithNorm = "token_embd token_embd_norm";

constexpr NeededTensors kNeeded[] = {
    {" llama llama-embed mistral3 smollm3 minicpm granite granitemoe qwen2 qwen2moe phimoe gemma internlm2 seed_oss "
     "gpt-oss glm4moe ",
     kUsual},
    {" qwen3 qwen3moe ", kWithHeadNorms},
    {" starcoder2 arcee phi3 gpt2 gptneox starcoder ", kWithoutGate},
    {" command-r cohere2 stablelm ", kParallel},
    {" phi2 falcon ", kParallelWithoutGate},
    {" olmo ", kWithoutNorms, kEmbeddingOnly},
    {" olmo2 ", kOlmo2},
    {" gemma2 ", kGemma2},
    {" gemma3 gemma-embedding ", kGemma3},
    {" glm4 ", kGlm4},
    {" deepseek2 ", kDeepseek2},
    {" lfm2 ", kLfm2, "token_embd token_embd_norm|output_norm"},
    {" qwen3next qwen35 qwen35moe ", kQwen3next},
    {" mamba ", kMamba},
    {" bert nomic-bert nomic-bert-moe jina-bert-v2 ", kBert, kEmbeddingWithNorm},
    {" modern-bert ", kModernBert, "token_embd token_embd_norm output_norm"},
};

}  // namespace

const NeededTensors* needed_tensors(std::string_view architecture) noexcept {
  const auto is_it = [&](const NeededTensors& row) {
    for (std::size_t at = 0; (at = row.architectures.find(architecture, at + 1)) != row.architectures.npos;) {
      if (row.architectures[at - 1] == ' ' && row.architectures[at + architecture.size()] == ' ') return true;
    }
    return false;
  };
  const auto found = std::ranges::find_if(kNeeded, is_it);
  return found == std::end(kNeeded) ? nullptr : &*found;
}

}  // namespace ballast::llamacpp
