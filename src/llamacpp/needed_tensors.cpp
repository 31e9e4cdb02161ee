#include "llamacpp/needed_tensors.hpp"

#include <algorithm>
#include <string>

namespace ballast::llamacpp {
namespace {

using NeededRoles = std::string_view;

constexpr NeededRoles kUsualAttention = "attn_q|attn_qkv attn_k|attn_qkv attn_v|attn_qkv attn_output";
constexpr NeededRoles kHeadNorms = "attn_q_norm attn_k_norm";
constexpr NeededRoles kUsualNorms = "attn_norm ffn_norm|post_attention_norm";
constexpr NeededRoles kOneNorm = "attn_norm";
constexpr NeededRoles kNormsBehind = "post_attention_norm post_ffw_norm";
constexpr NeededRoles kNormsBehindEncoder = "attn_output_norm layer_output_norm";
constexpr NeededRoles kUpDown =
    "ffn_up|ffn_up_exps|ffn_up.0|ffn_gate_up_exps "
    "ffn_down|ffn_down_exps|ffn_down.0";
constexpr NeededRoles kGate = "ffn_gate|ffn_gate_exps|ffn_gate.0|ffn_gate_up_exps";
constexpr NeededRoles kLatentAttention =
    "attn_q|attn_q_a attn_kv_a_mqa attn_kv_a_norm attn_k_b|attn_kv_b attn_v_b|attn_kv_b attn_output";
constexpr NeededRoles kAttentionOrConvolution = "attn_q|shortconv.in_proj attn_output|shortconv.out_proj";
constexpr NeededRoles kAttentionOrStates = "attn_q|attn_qkv attn_output|ssm_out";
constexpr NeededRoles kStates = "ssm_in ssm_conv1d ssm_x ssm_dt ssm_out";

constexpr NeededRoles kUsualBlock[] = {kUsualNorms, kUsualAttention, kGate, kUpDown};
constexpr NeededRoles kWithHeadNorms[] = {kUsualNorms, kUsualAttention, kHeadNorms, kGate, kUpDown};
constexpr NeededRoles kWithoutGate[] = {kUsualNorms, kUsualAttention, kUpDown};
constexpr NeededRoles kParallel[] = {kOneNorm, kUsualAttention, kGate, kUpDown};
constexpr NeededRoles kParallelWithoutGate[] = {kOneNorm, kUsualAttention, kUpDown};
constexpr NeededRoles kWithoutNorms[] = {kUsualAttention, kGate, kUpDown};
constexpr NeededRoles kGemma2[] = {kUsualNorms, kNormsBehind, kUsualAttention, kGate, kUpDown};
constexpr NeededRoles kGemma3[] = {kUsualNorms, kNormsBehind, kUsualAttention, kHeadNorms, kGate, kUpDown};
constexpr NeededRoles kOlmo2[] = {kNormsBehind, kUsualAttention, kHeadNorms, kGate, kUpDown};
constexpr NeededRoles kGlm4[] = {kUsualNorms, kNormsBehind, kUsualAttention, kUpDown};
constexpr NeededRoles kDeepseek2[] = {kUsualNorms, kLatentAttention, kGate, kUpDown};
constexpr NeededRoles kLfm2[] = {kUsualNorms, kAttentionOrConvolution, kGate, kUpDown};
constexpr NeededRoles kQwen3next[] = {kUsualNorms, kAttentionOrStates, kGate, kUpDown};
constexpr NeededRoles kMamba[] = {kOneNorm, kStates};
constexpr NeededRoles kBert[] = {kUsualAttention, kNormsBehindEncoder, kUpDown};
constexpr NeededRoles kModernBert[] = {"attn_qkv attn_output ffn_norm", kUpDown};  // its first block has no other norm

constexpr std::string_view kEmbeddingOnly = "token_embd";
constexpr std::string_view kEmbeddingWithNorm = "token_embd token_embd_norm";

constexpr NeededTensors kNeeded[] = {
    {" llama llama-embed mistral3 smollm3 minicpm granite granitemoe qwen2 qwen2moe phimoe gemma internlm2 seed_oss "
     "gpt-oss glm4moe ",
     kUsualBlock},
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
