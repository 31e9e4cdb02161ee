#include "llamacpp/names/tables.hpp"

#include <array>

#include "llamacpp/names/rows.hpp"

namespace ballast::names {
namespace {

using namespace rows;

// The rows of an architecture, its own ones first: the first row that matches counts.
using Rows = std::span<const Row>;
constexpr Rows kLlama[] = {kPermuted, kEnds, kNorms, kAttention, kFeedForward, kMixtralExperts};
constexpr Rows kUnpermuted[] = {kEnds, kNorms, kAttention, kFeedForward};
constexpr Rows kWithQueryKeyNorms[] = {kEnds, kNorms, kAttention, kQueryKeyNorms, kFeedForward};
constexpr Rows kQwenMoe[] = {kEnds, kNorms, kAttention, kQueryKeyNorms, kFeedForward, kExperts, kSharedExpert};
constexpr Rows kQwen3nextAll[] = {kQwen3nextNorms, kEnds,         kAttention, kFeedForward,
                                  kExperts,        kSharedExpert, kQwen3next, kMtp};
constexpr Rows kQwen35All[] = {kQwen3nextNorms, kEnds,         kAttention, kFeedForward,
                               kExperts,        kSharedExpert, kQwen35,    kMtp};
constexpr Rows kGemmaAll[] = {kGemmaNorms, kEnds, kAttention, kFeedForward};
constexpr Rows kGemma2All[] = {kGemma2Norms, kEnds, kAttention, kFeedForward};
constexpr Rows kGemma3All[] = {kGemma2Norms, kGemma3Norms, kEnds, kAttention, kFeedForward};
constexpr Rows kPhi2All[] = {kPhi2, kEnds, kNorms, kAttention};
constexpr Rows kPhi3All[] = {kPhi3, kEnds, kNorms, kFusedFeedForward};
constexpr Rows kPhimoeAll[] = {kMixtralExperts, kEnds, kNorms, kAttention};
constexpr Rows kStarcoder2All[] = {kStarcoder2, kEnds, kNorms, kAttention};
constexpr Rows kStablelmAll[] = {kStablelm, kEnds, kNorms, kAttention, kFeedForward};
constexpr Rows kOlmoAll[] = {kPermuted, kEnds, kAttention, kFeedForward};
constexpr Rows kOlmo2All[] = {kOlmo2Norms, kEnds, kAttention, kQueryKeyNorms, kFeedForward};
constexpr Rows kGlm4All[] = {kGlm4Norms, kEnds, kAttention, kFusedFeedForward};
constexpr Rows kGlm4moeAll[] = {kPostAttentionNorm, kEnds,    kAttention,     kQueryKeyNorms,
                                kFeedForward,       kExperts, kSharedExperts, kNextToken};
constexpr Rows kGraniteMoeAll[] = {kGraniteMoe, kPermuted, kEnds, kNorms, kAttention, kFeedForward};
constexpr Rows kDeepseek2All[] = {kDeepseek2, kEnds, kNorms, kFeedForward, kExperts, kSharedExperts};
constexpr Rows kGptOssAll[] = {kGptOss, kPostAttentionNorm, kEnds, kAttention};
constexpr Rows kLfm2All[] = {kLfm2, kAttention};
constexpr Rows kGpt2All[] = {kGpt2};
constexpr Rows kStarcoderAll[] = {kStarcoder};
constexpr Rows kGptNeoxAll[] = {kGptNeox};
constexpr Rows kFalconAll[] = {kFalcon};
constexpr Rows kInternlm2All[] = {kInternlm2};
constexpr Rows kMambaAll[] = {kMamba};
constexpr Rows kBertAll[] = {kBert, kDistilbert};
constexpr Rows kJinaBertAll[] = {kJinaBert, kBert};
constexpr Rows kNomicBertAll[] = {kNomicBert};
constexpr Rows kNomicBertMoeAll[] = {kNomicBertMoe, kNomicBert};
constexpr Rows kModernBertAll[] = {kModernBert};
constexpr Rows kT5All[] = {kT5};

// Without the head around it, and some other spellings.
constexpr Prefix kModelPrefixes[] = {
    {"layers.", "model.layers."},
    {"embed_tokens.", "model.embed_tokens."},
    {"norm.", "model.norm."},
    {"model.lm_head.", "lm_head."},
    {"model.text_model.", "model."},  // SmolVLM
    {"text_model.", ""},
};
constexpr Prefix kQwenPrefixes[] = {
    {"layers.", "model.layers."},
    {"embed_tokens.", "model.embed_tokens."},
    {"norm.", "model.norm."},
    {"model.mtp.", "mtp."},
};
constexpr Prefix kTransformerPrefixes[] = {
    {"h.", "transformer.h."},
    {"wte.", "transformer.wte."},
    {"wpe.", "transformer.wpe."},
    {"ln_f.", "transformer.ln_f."},
    {"word_embeddings.", "transformer.word_embeddings."},
};
constexpr Prefix kLfm2Prefixes[] = {
    {"layers.", "model.layers."},
    {"embed_tokens.", "model.embed_tokens."},
    {"embedding_norm.", "model.embedding_norm."},
    {"lfm.", "model."},
};
constexpr Prefix kMambaPrefixes[] = {{"backbone.embedding.", "backbone.embeddings."}};
constexpr Prefix kBertPrefixes[] = {
    {"bert.", ""}, {"roberta.", ""}, {"distilbert.", ""}, {"camembert.", ""}, {"model.", ""},
};

// Buffers that are computed anew, heads that llama.cpp does not have, and an output matrix that is the embedding.
constexpr std::string_view kHead[] = {"lm_head.weight"};
constexpr std::string_view kMasks[] = {"transformer.h.{}.attn.bias", "transformer.h.{}.attn.masked_bias"};
constexpr std::string_view kBertHeads[] = {
    "embeddings.position_ids",
    "pooler.dense.weight",
    "pooler.dense.bias",
    "cls.predictions.*",
    "cls.seq_relationship.*",
    "vocab_*",
    "lm_head.*",
    "encoder.layers.{}.mlp.experts.bias",
    "decoder.*",
};

// llama.cpp treats mistral as llama, except its third generation, which has its own name and the same tensors.
constexpr Architecture kArchitectures[] = {
    {"llama", "llama", kLlama, kModelPrefixes, {}},
    {"mistral", "llama", kLlama, kModelPrefixes, {}},
    {"mixtral", "llama", kLlama, kModelPrefixes, {}},
    {"mistral3", "mistral3", kLlama, kModelPrefixes, {}},
    {"llama-embed", "llama-embed", kLlama, kModelPrefixes, {}},
    {"smollm3", "smollm3", kLlama, kModelPrefixes, {}},
    {"minicpm", "minicpm", kLlama, kModelPrefixes, {}},
    {"granite", "granite", kLlama, kModelPrefixes, {}},
    {"granitemoe", "granitemoe", kGraniteMoeAll, kModelPrefixes, {}},
    {"arcee", "arcee", kLlama, kModelPrefixes, {}},
    {"qwen2", "qwen2", kUnpermuted, kModelPrefixes, {}},
    {"qwen3", "qwen3", kWithQueryKeyNorms, kModelPrefixes, {}},
    {"qwen2moe", "qwen2moe", kQwenMoe, kModelPrefixes, {}},
    {"qwen3moe", "qwen3moe", kQwenMoe, kModelPrefixes, {}},
    {"qwen3next", "qwen3next", kQwen3nextAll, kQwenPrefixes, {}, ExtraBlocks::mtp},
    {"qwen35", "qwen35", kQwen35All, kQwenPrefixes, {}, ExtraBlocks::mtp},
    {"qwen35moe", "qwen35moe", kQwen35All, kQwenPrefixes, {}, ExtraBlocks::mtp},
    {"seed_oss", "seed_oss", kUnpermuted, kModelPrefixes, {}},
    {"gemma", "gemma", kGemmaAll, kModelPrefixes, kHead},
    {"gemma2", "gemma2", kGemma2All, kModelPrefixes, kHead},
    {"gemma3", "gemma3", kGemma3All, kModelPrefixes, {}},
    {"gemma-embedding", "gemma-embedding", kGemma3All, kModelPrefixes, {}},
    {"phi2", "phi2", kPhi2All, kModelPrefixes, {}},
    {"phi3", "phi3", kPhi3All, kModelPrefixes, {}},
    {"phimoe", "phimoe", kPhimoeAll, kModelPrefixes, {}},
    {"starcoder2", "starcoder2", kStarcoder2All, kModelPrefixes, {}},
    {"stablelm", "stablelm", kStablelmAll, kModelPrefixes, {}},
    {"olmo", "olmo", kOlmoAll, kModelPrefixes, {}},
    {"olmo2", "olmo2", kOlmo2All, kModelPrefixes, {}},
    {"command-r", "command-r", kWithQueryKeyNorms, kModelPrefixes, kHead},
    {"cohere2", "cohere2", kUnpermuted, kModelPrefixes, kHead},
    {"glm4", "glm4", kGlm4All, kModelPrefixes, {}},
    {"glm4moe", "glm4moe", kGlm4moeAll, kModelPrefixes, {}, ExtraBlocks::in_line},
    {"deepseek2", "deepseek2", kDeepseek2All, kModelPrefixes, {}, ExtraBlocks::left_out},
    {"gpt-oss", "gpt-oss", kGptOssAll, kModelPrefixes, {}},
    {"lfm2", "lfm2", kLfm2All, kLfm2Prefixes, {}},
    {"internlm2", "internlm2", kInternlm2All, kModelPrefixes, {}},
    {"gpt2", "gpt2", kGpt2All, kTransformerPrefixes, kMasks},
    {"starcoder", "starcoder", kStarcoderAll, kTransformerPrefixes, kMasks},
    {"gptneox", "gptneox", kGptNeoxAll, kModelPrefixes, {}},
    {"falcon", "falcon", kFalconAll, kTransformerPrefixes, {}},
    {"mamba", "mamba", kMambaAll, kMambaPrefixes, {}},
    {"bert", "bert", kBertAll, kBertPrefixes, kBertHeads},
    {"jina-bert-v2", "jina-bert-v2", kJinaBertAll, kBertPrefixes, kBertHeads},
    {"nomic-bert", "nomic-bert", kNomicBertAll, kBertPrefixes, kBertHeads},
    {"nomic-bert-moe", "nomic-bert-moe", kNomicBertMoeAll, kBertPrefixes, kBertHeads},
    {"modern-bert", "modern-bert", kModernBertAll, kBertPrefixes, kBertHeads},
    {"t5", "t5", kT5All, {}, {}},
    {"t5encoder", "t5encoder", kT5All, {}, {}},
};

}  // namespace

std::span<const Architecture> architectures() noexcept { return kArchitectures; }

}  // namespace ballast::names
