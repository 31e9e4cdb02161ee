#include "inspect/config_numbers.hpp"

#include <algorithm>
#include <initializer_list>
#include <map>
#include <string_view>

#include "core/checked.hpp"

namespace ballast {
namespace {

using Count = std::optional<std::uint64_t>;
using Names = std::initializer_list<std::string_view>;

constexpr std::uint64_t kMostLayers = 1 << 16;

// Language models with towers for images keep their own sizes in one of these.
constexpr std::string_view kInnerConfigs[] = {"text_config", "language_config", "llm_config", "thinker_config"};

const Json& language_part(const Json& config) {
  for (const std::string_view key : kInnerConfigs) {
    const Json* inner = config.find(key);
    if (inner != nullptr && inner->is_object() && !inner->members().empty()) return *inner;
  }
  return config;
}

Count count_in(const Json* value) {
  if (value == nullptr || !value->is_integer() || value->number() < 0) return std::nullopt;
  return value->count();
}

Count count_in(const Json& config, Names names) {
  for (const std::string_view name : names) {
    if (const Count found = count_in(config.find(name))) return found;
  }
  return std::nullopt;
}

bool is_said(const Json& config, std::string_view key) {
  const Json* value = config.find(key);
  return value != nullptr && value->is_bool() && value->boolean();
}

// Layers that are alike, counted by what each of them keeps.
class CacheCounter {
 public:
  void add(std::uint64_t values_per_token, Count window, std::uint64_t layers = 1) {
    if (values_per_token != 0 && layers != 0) counts_[{values_per_token, window}] += layers;
  }
  std::vector<ModelInfo::Cache> caches() const {
    std::vector<ModelInfo::Cache> result;
    for (const auto& [key, layers] : counts_) result.push_back({layers, key.first, key.second});
    return result;
  }

 private:
  std::map<std::pair<std::uint64_t, Count>, std::uint64_t> counts_;
};

// Keys and values of all heads, or the one vector that DeepSeek's latent attention keeps for both.
Count values_per_token(const Json& config, const ModelInfo& model) {
  const Count latent = count_in(config, {"kv_lora_rank"}), rotated = count_in(config, {"qk_rope_head_dim"});
  if (latent && rotated) return checked_add(*latent, *rotated);
  if (!model.kv_heads || !model.head_size) return std::nullopt;
  const auto one = checked_mul(*model.kv_heads, *model.head_size);
  return one ? checked_mul(*one, std::uint64_t{2}) : std::nullopt;
}

// Models whose layers are not all layers of attention, and do not say which.
bool has_unsaid_layers(const Json& config) {
  constexpr std::string_view kSigns[] = {"attn_layer_period", "hybrid_override_pattern", "ssm_cfg", "state_size",
                                         "mamba_d_state",     "ssm_state_size",          "rwkv"};
  return std::ranges::any_of(kSigns, [&](std::string_view key) { return config.find(key) != nullptr; });
}

// Encoders look at all tokens at once and keep nothing of them, unless they were made decoders.
bool is_encoder(const Json& config, std::string_view type) {
  constexpr std::string_view kEncoders[] = {
      "albert",     "bert",  "camembert", "deberta",    "deberta-v2", "distilbert", "electra",     "esm", "eurobert",
      "modernbert", "mpnet", "neobert",   "nomic_bert", "roberta",    "roformer",   "xlm-roberta", "xmod"};
  return std::ranges::count(kEncoders, type) != 0 && !is_said(config, "is_decoder");
}

const Json* kinds_of_layers(const Json& config) {
  for (const std::string_view key : {"layer_types", "layers_block_type"}) {
    const Json* kinds = config.find(key);
    if (kinds != nullptr && kinds->is_list() && !kinds->list().empty()) return kinds;
  }
  return nullptr;
}

std::vector<ModelInfo::Cache> caches_in(const Json& config, const ModelInfo& model) {
  const Count each = values_per_token(config, model);
  if (!each || !model.layers || *model.layers > kMostLayers || is_encoder(config, model.type)) return {};
  CacheCounter counter;
  const Json* kinds = kinds_of_layers(config);
  if (kinds != nullptr && kinds->list().size() != *model.layers) return {};  // one of the two is wrong
  if (kinds == nullptr) {
    if (has_unsaid_layers(config)) return {};
    // Without a list, one cannot know which layers have a window: all tokens are an upper bound.
    counter.add(*each, std::nullopt, *model.layers);
    return counter.caches();
  }
  for (const Json& kind : kinds->list()) {
    const std::string_view name = kind.is_text() ? std::string_view(kind.text()) : std::string_view();
    if (name == "full_attention" || name == "attention" || name == "global_attention") counter.add(*each, std::nullopt);
    if (name == "sliding_attention" || name == "chunked_attention")
      counter.add(*each, count_in(config, {"sliding_window", "attention_chunk_size"}));
  }
  return counter.caches();
}

std::string text_in(const Json* value) { return value != nullptr && value->is_text() ? value->text() : std::string(); }

std::string dtype_in(const Json& config) {
  const std::string name = text_in(config.find("torch_dtype"));
  const std::string newer = name.empty() ? text_in(config.find("dtype")) : name;
  return newer.starts_with("torch.") ? newer.substr(6) : newer;
}

// Of one number, or of the first of one for each layer.
Count count_in(const MetadataEntry* field) {
  if (field == nullptr) return std::nullopt;
  if (!field->is_array()) return field->as_uint();
  for (const MetadataValue item : field->items()) {
    if (const auto count = item.as_uint(); count && *count != 0) return count;
  }
  return std::nullopt;
}

class GgufNumbers {
 public:
  GgufNumbers(const TypedMetadata& metadata, std::string_view architecture)
      : metadata_(metadata), prefix_(std::string(architecture) + ".") {}

  const MetadataEntry* field(std::string_view key) const { return metadata_.find(prefix_ + std::string(key)); }
  Count count(std::string_view key) const { return count_in(field(key)); }

 private:
  const TypedMetadata& metadata_;
  std::string prefix_;
};

bool is_encoder(const GgufNumbers& numbers, std::string_view architecture) {
  constexpr std::string_view kEncoders[] = {"bert",        "eurobert",       "jina-bert-v2", "jina-bert-v3",
                                            "modern-bert", "neo-bert",       "nomic-bert",   "nomic-bert-moe",
                                            "t5encoder",   "gemma-embedding"};
  const MetadataEntry* causal = numbers.field("attention.causal");
  return std::ranges::count(kEncoders, architecture) != 0 || (causal != nullptr && causal->as_bool() == false);
}

std::vector<ModelInfo::Cache> caches_in(const GgufNumbers& numbers, const ModelInfo& model) {
  if (!model.layers || *model.layers > kMostLayers || is_encoder(numbers, model.type)) return {};
  CacheCounter counter;
  const Count latent = numbers.count("attention.kv_lora_rank"), rotated = numbers.count("rope.dimension_count");
  if (latent && rotated) {
    counter.add(checked_add(*latent, *rotated).value_or(0), std::nullopt, *model.layers);
    return counter.caches();
  }
  const Count keys = numbers.count("attention.key_length"), values = numbers.count("attention.value_length");
  if (!model.kv_heads || !model.head_size) return {};
  const std::uint64_t size =
      checked_add(keys.value_or(*model.head_size), values.value_or(*model.head_size)).value_or(0);
  const MetadataEntry* heads = numbers.field("attention.head_count_kv");
  if (heads != nullptr && heads->is_array()) {  // none in layers that do not attend
    for (const MetadataValue item : heads->items())
      counter.add(checked_mul(item.as_uint().value_or(0), size).value_or(0), std::nullopt);
    return counter.caches();
  }
  const std::uint64_t interval = numbers.count("full_attention_interval").value_or(1);
  if (interval == 1 && numbers.field("ssm.state_size") != nullptr) return {};
  counter.add(checked_mul(*model.kv_heads, size).value_or(0), std::nullopt,
              interval == 0 ? 0 : *model.layers / interval);
  return counter.caches();
}

}  // namespace

void read_config_numbers(const Json& config, ModelInfo& model) {
  if (!config.is_object()) return;
  const Json& inner = language_part(config);
  const Json* classes = config.find("architectures");
  if (classes != nullptr && classes->is_list() && !classes->list().empty())
    model.class_name = text_in(&classes->list()[0]);
  if (model.class_name.empty()) model.class_name = text_in(config.find("_class_name"));
  model.type = text_in(config.find("model_type"));
  model.dtype = dtype_in(config);
  if (model.dtype.empty()) model.dtype = dtype_in(inner);
  model.layers = count_in(inner, {"num_hidden_layers", "n_layer", "num_layers", "n_layers", "decoder_layers"});
  model.hidden_size = count_in(inner, {"hidden_size", "n_embd", "d_model", "dim"});
  model.heads = count_in(inner, {"num_attention_heads", "n_head", "n_heads", "num_heads", "decoder_attention_heads"});
  model.kv_heads = count_in(inner, {"num_key_value_heads", "num_kv_heads", "n_head_kv", "multi_query_group_num"});
  if (!model.kv_heads) model.kv_heads = is_said(inner, "multi_query") ? Count(1) : model.heads;
  model.head_size = count_in(inner, {"head_dim", "kv_channels", "d_kv"});
  if (!model.head_size && model.heads.value_or(0) != 0 && model.hidden_size)
    model.head_size = *model.hidden_size / *model.heads;
  model.vocabulary = count_in(inner, {"vocab_size", "padded_vocab_size"});
  model.context = count_in(inner, {"max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "seq_length",
                                   "max_sequence_length", "max_target_positions"});
  model.experts = count_in(inner, {"num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts"});
  model.experts_used = count_in(inner, {"num_experts_per_tok", "num_experts_per_token", "moe_topk", "moe_top_k"});
  model.caches = caches_in(inner, model);
}

void read_gguf_numbers(const TypedMetadata& metadata, ModelInfo& model) {
  const auto architecture = metadata.find_string("general.architecture");
  if (!architecture) return;
  const GgufNumbers numbers(metadata, *architecture);
  model.type = *architecture;
  model.layers = numbers.count("block_count");
  model.hidden_size = numbers.count("embedding_length");
  model.heads = numbers.count("attention.head_count");
  model.kv_heads = numbers.field("attention.head_count_kv") ? numbers.count("attention.head_count_kv") : model.heads;
  model.head_size = numbers.count("attention.key_length");
  if (!model.head_size && model.heads.value_or(0) != 0 && model.hidden_size)
    model.head_size = *model.hidden_size / *model.heads;
  model.context = numbers.count("context_length");
  model.experts = numbers.count("expert_count");
  model.experts_used = numbers.count("expert_used_count");
  if (const MetadataEntry* tokens = metadata.find("tokenizer.ggml.tokens")) model.vocabulary = tokens->count;
  if (const auto kind = metadata.find_string("tokenizer.ggml.model")) model.tokenizer = *kind;
  if (const auto pre = metadata.find_string("tokenizer.ggml.pre")) model.tokenizer += ", " + std::string(*pre);
  model.has_chat_template = metadata.contains("tokenizer.chat_template");
  model.caches = caches_in(numbers, model);
}

}  // namespace ballast
