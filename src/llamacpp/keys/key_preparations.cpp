// What some architectures change before their keys are written, and the keys of embedding models.
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <ballast/error.hpp>

#include "core/text.hpp"
#include "llamacpp/config/json_values.hpp"
#include "llamacpp/keys/key_formulas.hpp"
#include "llamacpp/keys/metadata_values.hpp"
#include "llamacpp/tokenizer/tokenizer_json.hpp"

namespace ballast::llamacpp::formulas {
namespace {

constexpr int kPoolingRank = 4;

[[noreturn]] void refuse_model(std::string_view because) { throw Error(Errc::unsupported, std::string(because)); }

bool is_class(const HyperModel& model, std::string_view begin) { return model.config.class_name.starts_with(begin); }

// The first positions are kept for padding.
void leave_out_padding_positions(HyperModel& model) {
  const Json* padding = model.config.find("pad_token_id");
  const Json* positions = model.config.find("max_position_embeddings");
  if (is_null(padding) || positions == nullptr) return;
  const std::uint64_t before = model.config.count("pad_token_id") + 1;
  const std::uint64_t all = model.config.count("max_position_embeddings");
  if (all < before) throw Error(Errc::malformed, "there are fewer positions than \"pad_token_id\" leaves out");
  model.config.values.set("max_position_embeddings", all - before);
}

// Blocks that guess ahead come behind the others.
void set_guessing_blocks(HyperModel& model, std::uint64_t count) {
  model.guessing_blocks = count;
  model.blocks = model.config.count("num_hidden_layers") + count;
}

std::uint64_t count_or_zero(const HyperModel& model, std::string_view key) {
  return is_true(model.config.find(key)) ? model.config.count(key) : 0;
}

bool has_unigram_tokenizer(const HyperModel& model) {
  const auto tokenizer = TokenizerJson::read(model.folder);
  const Json* kind = tokenizer ? tokenizer->root().find("model") : nullptr;
  const Json* type = kind == nullptr ? nullptr : kind->find("type");
  return type != nullptr && *type == Json("Unigram");
}

// llama.cpp knows the models that there are, and not what else their code could do.
void require_known_nomic(const HyperModel& model) {
  const bool has_experts = model.config.architecture == "nomic-bert-moe";
  const std::pair<std::string_view, Json> expected[] = {
      {"causal", false},
      {"qkv_proj_bias", has_experts},
      {"mlp_fc1_bias", has_experts},
      {"mlp_fc2_bias", has_experts},
      {"prenorm", false},
      {"rotary_emb_interleaved", false},
      {"rotary_emb_scale_base", nullptr},
  };
  for (const auto& [key, value] : expected) {
    const Json* found = model.config.find(key);
    if (found != nullptr && *found == value) continue;
    refuse_model(
        fmt::format("it is a nomic-bert whose {} is not {}, which llama.cpp cannot run", quote(key), to_string(value)));
  }
  const Json* activation = model.config.find("activation_function");
  const bool is_unsaid = !has_experts && is_null(activation);
  if (!is_unsaid && (activation == nullptr || *activation != Json(has_experts ? "gelu" : "swiglu"))) {
    refuse_model("it is a nomic-bert with another \"activation_function\" than llama.cpp has for it");
  }
  if (real_number(model.config.find("rotary_emb_fraction")) != 1.0) {
    refuse_model("it is a nomic-bert that rotates only a part of each head, which llama.cpp cannot run");
  }
}

bool says_qwen3_reranker(std::string_view text) {
  const std::string lower = lower_case(text);
  return lower.find("qwen3-reranker") != std::string::npos || lower.find("qwen3-vl-reranker") != std::string::npos;
}

bool card_says_qwen3_reranker(const ModelFolder& folder) {
  const auto card = folder.text("README.md");
  if (!card) return false;
  const std::string lower = lower_case(*card);
  return lower.find("# qwen3-reranker") != std::string::npos || lower.find("# qwen3-vl-reranker") != std::string::npos;
}

// Models that judge how well a document answers a query look like any other language model.
bool is_reranker(const HyperModel& model) {
  const Json* classes = model.config.raw.find("architectures");
  const bool has_class = classes != nullptr && classes->is_list() && !classes->list().empty();
  const std::string name = has_class && classes->list()[0].is_text() ? classes->list()[0].text() : "";
  return card_says_qwen3_reranker(model.folder) || says_qwen3_reranker(model.folder.name()) ||
         says_qwen3_reranker(name) || lower_case(name).find("sequenceclassification") != std::string::npos;
}

// The folder of sentence-transformers' first module that pools.
std::optional<std::string> pooling_folder(const HyperModel& model) {
  const auto modules = model.folder.json("modules.json");
  if (!modules || !modules->is_list()) return std::nullopt;
  for (const Json& module : modules->list()) {
    const Json* type = module.find("type");
    const Json* path = module.find("path");
    const bool pools = type != nullptr && type->is_text() && type->text().ends_with("Pooling");
    if (!pools || path == nullptr || !path->is_text()) continue;
    const std::string_view folder = path->text();
    return std::string(folder.ends_with('/') ? folder.substr(0, folder.size() - 1) : folder);
  }
  return std::nullopt;
}

int pooling_type(const Json& config) {
  struct Mode {
    std::string_view flag, name;
    int type;
  };
  constexpr Mode kModes[] = {{"pooling_mode_mean_tokens", "mean", 1},
                             {"pooling_mode_cls_token", "cls", 2},
                             {"pooling_mode_lasttoken", "lasttoken", 3}};
  for (const Mode& mode : kModes) {
    if (is_true(config.find(mode.flag))) return mode.type;
  }
  const Json* name = config.find("pooling_mode");
  for (const Mode& mode : kModes) {
    if (name != nullptr && *name == Json(mode.name)) return mode.type;
  }
  refuse_model("it pools neither the mean of the tokens, nor the first, nor the last");
}

}  // namespace

void prepare_llama(HyperModel& model) {
  if (model.config.class_name != "VLlama3ForCausalLM" || model.config.find("num_attention_heads") != nullptr) return;
  model.config.values.set("num_attention_heads", 32);
}

void prepare_granite(HyperModel& model) {
  model.config.values.erase("head_dim");
  for (const std::string_view key : {"spatial_target_layers", "deepstack_layer_map"}) {
    if (is_true(model.config.find(key))) refuse_model("it is the language part of a Granite that sees images");
  }
}

void prepare_gemma3(HyperModel& model) {
  if (is_null(model.config.find("attn_logit_softcapping"))) return;
  refuse_model("it is a Gemma 3 with \"attn_logit_softcapping\", which llama.cpp cannot run");
}

void prepare_gpt2(HyperModel& model) {
  if (model.config.class_name != "GPT2LMHeadModel") refuse_model("it is a GPT-2 of a kind that is not known");
}

void prepare_bert(HyperModel& model) {
  if (is_class(model, "DistilBert")) {
    const Json epsilon(1e-12);
    write_key(model, "attention.layer_norm_epsilon", KeyKind::real, &epsilon);
  }
  if (is_class(model, "Roberta") || is_class(model, "XLMRoberta")) leave_out_padding_positions(model);
}

void prepare_nomic(HyperModel& model) {
  if (has_unigram_tokenizer(model)) leave_out_padding_positions(model);
  const std::uint64_t positions = model.config.count("n_positions");
  const Json* trained = model.config.find("max_trained_positions");
  const bool is_trained_on_2048 = trained == nullptr || *trained == Json(2048);
  if (!is_trained_on_2048 || (positions != 8192 && positions != 2048)) {
    refuse_model(
        "it is a nomic-bert with other \"n_positions\" and \"max_trained_positions\" than those that are known");
  }
  // What the models were really trained on.
  model.config.values.set("n_positions", positions == 8192 ? 2048 : 512);
  require_known_nomic(model);
}

// Attention on compressed keys and values has one head for all queries.
void prepare_deepseek2(HyperModel& model) {
  model.config.values.set("num_key_value_heads", 1);
  if (model.config.find("rms_norm_eps") == nullptr) model.config.values.set("rms_norm_eps", 1e-6);
  if (is_class(model, "Glm4MoeLite")) set_guessing_blocks(model, count_or_zero(model, "num_nextn_predict_layers"));
}

void prepare_guessing(HyperModel& model) {
  const bool has_one = model.config.architecture != "glm4" || is_class(model, "GlmOcr");
  if (has_one) set_guessing_blocks(model, count_or_zero(model, "num_nextn_predict_layers"));
}

void prepare_qwen3next(HyperModel& model) {
  const std::uint64_t said = count_or_zero(model, "mtp_num_hidden_layers");
  set_guessing_blocks(model, said > 0 ? said : model.config.guessing_blocks);
}

// What was trained on is in model_max_length, if it is there.
void prepare_command_r(HyperModel& model) {
  const Json* positions = model.config.find_first("model_max_length max_position_embeddings");
  if (positions == nullptr) throw Error(Errc::malformed, "it has no \"max_position_embeddings\"");
  model.config.values.set("max_position_embeddings", Json(*positions));
}

// Blocks that convolve have no heads.
void prepare_lfm2(HyperModel& model) {
  if (is_class(model, "Lfm25AudioTokenizer")) refuse_model("it is a tokenizer of sounds, not a language model");
  const std::uint64_t heads = model.config.count("num_key_value_heads");
  const Json* types = model.config.find("layer_types");
  if (types == nullptr || !types->is_list()) throw Error(Errc::malformed, "it has no list of \"layer_types\"");
  Json::List counts;
  for (const Json& type : types->list()) counts.push_back(type == Json("conv") ? Json(0) : Json(heads));
  model.config.values.set("num_key_value_heads", std::move(counts));
}

void write_pooling(HyperModel& model) {
  if (model.config.architecture == "lfm2" && !is_class(model, "Lfm2Model") && !is_class(model, "Lfm2Bidirectional"))
    return;
  const auto folder = pooling_folder(model);
  if (!folder) return;
  if (folder->starts_with('/') || folder->find("..") != std::string::npos) {
    throw Error(Errc::unsafe, fmt::format("the folder {} is not in the model's", quote(*folder)))
        .in(model.folder.path("modules.json"));
  }
  const std::string file = folder->empty() ? "config.json" : *folder + "/config.json";
  const auto config = model.folder.json(file);
  if (!config) throw Error(Errc::not_found, "modules.json names it, but it is not there").in(model.folder.path(file));
  const Json type(pooling_type(*config));
  write_key(model, "pooling_type", KeyKind::count, &type);
}

void write_reranker(HyperModel& model) {
  if (!is_reranker(model)) return;
  const Json type(kPoolingRank);
  const Json labels(Json::List{"yes", "no"});
  const Json query(
      "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct "
      "provided. Note that the answer can only be \"yes\" or \"no\".<|im_end|>\n<|im_start|>user\n<Instruct>: Given a "
      "web search query, retrieve relevant passages that answer the query\n<Query>: {query}\n<Document>: "
      "{document}<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n");
  const Json templates(Json::List{"rerank"});
  write_key(model, "pooling_type", KeyKind::count, &type);
  write_key(model, "classifier.output_labels", KeyKind::list, &labels);
  write_key(model, "tokenizer.chat_template.rerank", KeyKind::text, &query);
  write_key(model, "tokenizer.chat_templates", KeyKind::list, &templates);
}

}  // namespace ballast::llamacpp::formulas
