// The classes that every architecture may have been, and what is the same in all models of a class.
#include <algorithm>
#include <utility>

#include "core/text.hpp"
#include "llamacpp/back/back_model.hpp"
#include "llamacpp/back/finish.hpp"
#include "llamacpp/config/config_classes.hpp"
#include "llamacpp/keys/metadata_values.hpp"

namespace ballast::llamacpp::back {
namespace {

bool has_experts(const GgufFacts& facts) { return facts.count("expert_count").value_or(0) > 0; }

bool says_llama(const GgufFacts& facts) {
  for (const std::string_view key : {"general.name", "general.basename", "general.base_model.0.name"}) {
    if (lower_case(facts.text(key)).find("llama") != std::string::npos) return true;
  }
  return false;
}

// What only llama has, and what it calls itself. Else the two are the same model.
bool may_be_mistral(const GgufFacts& facts) {
  return !has_experts(facts) && !facts.has_ending(".bias") && !facts.has("rope_freqs.weight") && !says_llama(facts);
}

bool is_ministral(const GgufFacts& facts) { return facts.number("attention.temperature_scale").has_value(); }

bool chooses_by_sigmoid(const GgufFacts& facts) {
  constexpr std::uint64_t kSigmoid = 2;
  return facts.count("expert_gating_func") == kSigmoid || facts.has_ending(".exp_probs_b.bias");
}

bool has_windows(const GgufFacts& facts) { return facts.count("attention.sliding_window").has_value(); }

bool has_mamba_norms(const GgufFacts& facts) { return facts.value("ssm.dt_b_c_rms") == Json(true); }

bool has_shared_experts(const GgufFacts& facts) {
  return facts.count("expert_shared_feed_forward_length").value_or(0) > 0;
}

bool has_byte_pairs(const GgufFacts& facts) { return facts.text("tokenizer.ggml.model") == "gpt2"; }
bool has_unigrams(const GgufFacts& facts) { return facts.text("tokenizer.ggml.model") == "t5"; }
bool classifies(const GgufFacts& facts) { return facts.has("cls.output.weight"); }
bool classifies_byte_pairs(const GgufFacts& facts) { return classifies(facts) && has_byte_pairs(facts); }
bool classifies_unigrams(const GgufFacts& facts) { return classifies(facts) && has_unigrams(facts); }

bool has_no_token_types(const GgufFacts& facts) { return !facts.has("token_types.weight"); }
bool classifies_distilled(const GgufFacts& facts) { return classifies(facts) && has_no_token_types(facts); }

// Every decoder block of umT5 has its own biases of positions.
bool is_umt5(const GgufFacts& facts) { return facts.has("dec.blk.1.attn_rel_b.weight"); }

constexpr std::string_view kWholeWindow = R"({"sliding_window":null})";
constexpr std::string_view kNomic =
    R"({"activation_function":"swiglu","causal":false,"qkv_proj_bias":false,"mlp_fc1_bias":false,)"
    R"("mlp_fc2_bias":false,"prenorm":false,"rotary_emb_interleaved":false,"rotary_emb_scale_base":null,)"
    R"("rotary_emb_fraction":1.0,"max_trained_positions":2048,"parallel_block":false,"use_rms_norm":false})";
constexpr std::string_view kNomicMoe =
    R"({"activation_function":"gelu","causal":false,"qkv_proj_bias":true,"mlp_fc1_bias":true,)"
    R"("mlp_fc2_bias":true,"prenorm":false,"rotary_emb_interleaved":false,"rotary_emb_scale_base":null,)"
    R"("rotary_emb_fraction":1.0,"max_trained_positions":2048,"parallel_block":false,"use_rms_norm":false})";
constexpr std::string_view kQwenMoe = R"({"norm_topk_prob":true,"decoder_sparse_step":1,"mlp_only_layers":[]})";

// clang-format off
constexpr BackClass kClasses[] = {
    {"arcee", "ArceeForCausalLM", "arcee"},
    {"bert", "RobertaForSequenceClassification", "roberta", "{}", classifies_byte_pairs, finish_roberta},
    {"bert", "XLMRobertaForSequenceClassification", "xlm-roberta", "{}", classifies_unigrams, finish_roberta},
    {"bert", "DistilBertForSequenceClassification", "distilbert", "{}", classifies_distilled},
    {"bert", "BertForSequenceClassification", "bert", "{}", classifies, finish_bert},
    {"bert", "RobertaModel", "roberta", "{}", has_byte_pairs, finish_roberta},
    {"bert", "XLMRobertaModel", "xlm-roberta", "{}", has_unigrams, finish_roberta},
    {"bert", "DistilBertModel", "distilbert", "{}", has_no_token_types},
    {"bert", "BertModel", "bert", "{}", nullptr, finish_bert},
    {"cohere2", "Cohere2ForCausalLM", "cohere2"},
    {"command-r", "CohereForCausalLM", "cohere"},
    {"deepseek2", "DeepseekV3ForCausalLM", "deepseek_v3", R"({"topk_method":"noaux_tc","moe_layer_freq":1})",
     chooses_by_sigmoid, finish_deepseek},
    {"deepseek2", "DeepseekV2ForCausalLM", "deepseek_v2", R"({"moe_layer_freq":1})", nullptr, finish_deepseek},
    {"falcon", "FalconForCausalLM", "falcon", R"({"alibi":false,"parallel_attn":true})", nullptr, finish_falcon},
    {"gemma", "GemmaForCausalLM", "gemma"},
    {"gemma-embedding", "Gemma3TextModel", "gemma3_text", R"({"use_bidirectional_attention":true})", nullptr,
     finish_gemma},
    {"gemma2", "Gemma2ForCausalLM", "gemma2", "{}", nullptr, finish_gemma},
    {"gemma3", "Gemma3ForCausalLM", "gemma3_text", "{}", nullptr, finish_gemma},
    {"glm4", "Glm4ForCausalLM", "glm4"},
    {"glm4moe", "Glm4MoeForCausalLM", "glm4_moe", "{}", nullptr, finish_glm4moe},
    {"gpt-oss", "GptOssForCausalLM", "gpt_oss"},
    {"gpt2", "GPT2LMHeadModel", "gpt2"},
    {"gptneox", "GPTNeoXForCausalLM", "gpt_neox"},
    {"granite", "GraniteForCausalLM", "granite"},
    {"granitemoe", "GraniteMoeSharedForCausalLM", "granitemoeshared", "{}", has_shared_experts},
    {"granitemoe", "GraniteMoeForCausalLM", "granitemoe"},
    {"internlm2", "InternLM2ForCausalLM", "internlm2", "{}", nullptr, nullptr, true},
    {"jina-bert-v2", "JinaBertModel", "bert", R"({"position_embedding_type":"alibi"})", nullptr, finish_jina, true},
    {"lfm2", "Lfm2ForCausalLM", "lfm2", R"({"block_auto_adjust_ff_dim":false})", nullptr, finish_lfm2},
    {"llama", "MixtralForCausalLM", "mixtral", kWholeWindow, has_experts},
    {"llama", "LlamaForCausalLM", "llama"},
    {"llama", "MistralForCausalLM", "mistral", kWholeWindow, may_be_mistral, nullptr, false, true},
    {"llama-embed", "LlamaBidirectionalModel", "llama_bidirec", "{}", nullptr, nullptr, true},
    {"mamba", "FalconMambaForCausalLM", "falcon_mamba", R"({"expand":2})", has_mamba_norms},
    {"mamba", "MambaForCausalLM", "mamba", R"({"expand":2})"},
    {"minicpm", "MiniCPMForCausalLM", "minicpm", "{}", nullptr, nullptr, true},
    {"mistral3", "Ministral3ForCausalLM", "ministral3", kWholeWindow, is_ministral},
    // The language model is a Mistral to transformers, and to llama.cpp one of a family with another name.
    {"mistral3", "Ministral3ForCausalLM", "mistral", kWholeWindow},
    {"modern-bert", "ModernBertForSequenceClassification", "modernbert", "{}", classifies},
    {"modern-bert", "ModernBertModel", "modernbert"},
    {"nomic-bert", "NomicBertModel", "nomic_bert", kNomic, nullptr, finish_nomic, true},
    {"nomic-bert-moe", "NomicBertModel", "nomic_bert", kNomicMoe, nullptr, finish_nomic, true},
    {"olmo", "OlmoForCausalLM", "olmo"},
    {"olmo2", "Olmo3ForCausalLM", "olmo3", "{}", has_windows},
    {"olmo2", "Olmo2ForCausalLM", "olmo2"},
    {"phi2", "PhiForCausalLM", "phi"},
    {"phi3", "Phi3ForCausalLM", "phi3"},
    {"phimoe", "PhiMoEForCausalLM", "phimoe"},
    {"qwen2", "Qwen2ForCausalLM", "qwen2", R"({"use_sliding_window":false})"},
    {"qwen2moe", "Qwen2MoeForCausalLM", "qwen2_moe", R"({"use_sliding_window":false,"norm_topk_prob":false})"},
    {"qwen3", "Qwen3ForCausalLM", "qwen3", R"({"use_sliding_window":false})"},
    {"qwen35", "Qwen3_5ForCausalLM", "qwen3_5_text", "{}", nullptr, finish_qwen35},
    {"qwen35moe", "Qwen3_5MoeForCausalLM", "qwen3_5_moe_text", "{}", nullptr, finish_qwen35},
    {"qwen3moe", "Qwen3MoeForCausalLM", "qwen3_moe", kQwenMoe},
    {"qwen3next", "Qwen3NextForCausalLM", "qwen3_next", kQwenMoe, nullptr, finish_qwen3next},
    {"seed_oss", "SeedOssForCausalLM", "seed_oss"},
    {"smollm3", "SmolLM3ForCausalLM", "smollm3"},
    {"stablelm", "StableLmForCausalLM", "stablelm"},
    {"starcoder", "GPTBigCodeForCausalLM", "gpt_bigcode", R"({"multi_query":true})"},
    {"starcoder2", "Starcoder2ForCausalLM", "starcoder2"},
    {"t5", "UMT5ForConditionalGeneration", "umt5", R"({"is_encoder_decoder":true})", is_umt5, finish_t5},
    {"t5", "T5ForConditionalGeneration", "t5", R"({"is_encoder_decoder":true})", nullptr, finish_t5},
    {"t5encoder", "T5EncoderModel", "t5", "{}", nullptr, finish_t5},
};
// clang-format on

// What classes call values that transformers has no class for.
constexpr std::pair<std::string_view, std::string_view> kNamesWithoutClass[] = {
    {"nomic_bert",
     R"({"n_positions":0,"n_embd":0,"n_inner":0,"n_head":0,"n_layer":0,"layer_norm_epsilon":0,"rotary_emb_base":0})"},
    {"", R"({"max_position_embeddings":0,"hidden_size":0,"intermediate_size":0,"num_attention_heads":0,)"
         R"("num_key_value_heads":0,"num_hidden_layers":0,"rope_theta":0,"num_experts":0,"num_experts_per_tok":0})"},
};

std::string_view word_at_front(std::string_view& words) {
  const std::size_t end = words.find(' ');
  const std::string_view word = words.substr(0, end);
  words = end == std::string_view::npos ? std::string_view() : words.substr(end + 1);
  return word;
}

}  // namespace

BackModel::BackModel(const GgufFacts& own_facts, const BackClass& own_class) : facts(own_facts), of(own_class) {
  config.set("architectures", Json::List{Json(of.class_name)});
  config.set("model_type", of.model_type);
  const Json fixed = Json::parse(of.fixed);
  for (const auto& [name, value] : fixed.members()) config.set(name, value);
  if (const ConfigClass* known = config_class(of.model_type)) defaults = Json::parse(known->defaults);
}

std::string_view BackModel::name_of(std::string_view sources) const {
  const std::string_view first = sources.substr(0, sources.find(' '));
  const auto first_in = [&](const Json& names) {
    std::string_view rest = sources;
    while (!rest.empty()) {
      const std::string_view name = word_at_front(rest);
      if (names.find(name) != nullptr) return name;
    }
    return std::string_view();
  };
  if (!defaults.is_null()) {
    const std::string_view found = first_in(defaults);
    return found.empty() ? first : found;
  }
  for (const auto& [model_type, names] : kNamesWithoutClass) {
    if (!model_type.empty() && model_type != of.model_type) continue;
    const std::string_view found = first_in(Json::parse(names));
    if (!found.empty()) return found;
  }
  return first;
}

std::vector<const BackClass*> classes_of(const GgufFacts& facts) {
  std::vector<const BackClass*> found;
  for (const BackClass& row : kClasses) {
    const bool is_one = row.architecture == facts.architecture() && (row.fits == nullptr || row.fits(facts));
    if (is_one && (found.empty() || row.is_twin)) found.push_back(&row);
  }
  return found;
}

}  // namespace ballast::llamacpp::back
