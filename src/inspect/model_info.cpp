#include <ballast/error.hpp>
#include <ballast/json.hpp>
#include <ballast/model_info.hpp>
#include <ballast/remote.hpp>

#include <algorithm>
#include <string_view>

#include "checkpoint/pipeline.hpp"
#include "core/checked.hpp"
#include "core/json_parse.hpp"
#include "inspect/config_numbers.hpp"
#include "io/section.hpp"

namespace ballast {
namespace {

constexpr std::uint64_t kMostBytes = 32 << 20;  // tokenizer_config.json may list a hundred thousand added tokens

// The small files of one folder. A file that cannot be read is noted, since people ask what a broken folder is, too.
class SmallFiles {
 public:
  SmallFiles(std::string folder, std::vector<std::string> names, const Files& files, std::vector<Note>& notes)
      : folder_(std::move(folder)), names_(std::move(names)), files_(files), notes_(notes) {}

  bool has(std::string_view name) const { return std::ranges::find(names_, name) != names_.end(); }

  // An object; null if there is none.
  Json json(const std::string& name) const {
    if (!has(name)) return {};
    try {
      const auto text = io::read_text(*files_.open(files_.inside(folder_, name)), kMostBytes);
      Json found = parse_json(*text, JsonText::Numbers::python);
      if (found.is_object()) return found;
      notes_.push_back({name, "the file is not a JSON object"});
    } catch (const Error& error) {
      notes_.push_back({name, "cannot be read: " + error.message()});
    }
    return {};
  }

 private:
  std::string folder_;
  std::vector<std::string> names_;
  const Files& files_;
  std::vector<Note>& notes_;
};

std::string text_of_member(const Json& object, std::string_view key) {
  const Json* value = object.find(key);
  return value != nullptr && value->is_text() ? value->text() : std::string();
}

void read_tokenizer(const SmallFiles& files, ModelInfo& model) {
  constexpr std::string_view kTokenizers[] = {"tokenizer.json", "tokenizer.model", "spiece.model",      "tekken.json",
                                              "vocab.json",     "vocab.txt",       "tokenizer.tiktoken"};
  const auto found = std::ranges::find_if(kTokenizers, [&](std::string_view name) { return files.has(name); });
  if (found == std::end(kTokenizers)) return;
  const Json settings = files.json("tokenizer_config.json");
  const std::string class_name = text_of_member(settings, "tokenizer_class");
  model.tokenizer = class_name.empty() ? std::string(*found) : class_name + ", in " + std::string(*found);
  model.has_chat_template =
      settings.find("chat_template") != nullptr || files.has("chat_template.jinja") || files.has("chat_template.json");
}

// What people set when they sample; the ids of tokens are the tokenizer's business.
void read_generation(const SmallFiles& files, ModelInfo& model) {
  constexpr std::string_view kSettings[] = {"do_sample", "temperature",        "top_k",          "top_p",
                                            "min_p",     "repetition_penalty", "max_new_tokens", "max_length"};
  const Json config = files.json("generation_config.json");
  for (const std::string_view key : kSettings) {
    const Json* value = config.find(key);
    if (value != nullptr && !value->is_null()) model.generation.emplace_back(key, to_string(*value));
  }
}

void read_adapter(const SmallFiles& files, ModelInfo& model) {
  const Json config = files.json("adapter_config.json");
  if (config.is_null()) return;
  ModelInfo::Adapter adapter{
      text_of_member(config, "peft_type"), text_of_member(config, "base_model_name_or_path"), {}, {}};
  if (const Json* rank = config.find("r"); rank != nullptr && rank->is_integer() && rank->number() >= 0)
    adapter.rank = rank->count();
  if (const Json* alpha = config.find("lora_alpha"); alpha != nullptr && alpha->is_number())
    adapter.alpha = alpha->number();
  model.adapter = std::move(adapter);
}

void read_pipeline(const std::string& folder, const OpenOptions& options, ModelInfo& model) {
  const auto pipeline = find_pipeline(folder, options);
  if (!pipeline) return;
  model.class_name = pipeline->class_name;
  for (const PipelinePart& part : pipeline->parts) model.parts.emplace_back(part.name, part.class_name);
}

// transformers then drops the head that is stored. Only the values, which are not read here, tell whether that matters.
void note_dropped_head(const Json& config, const Checkpoint& checkpoint, ModelInfo& model) {
  const Json* tied = config.find("tie_word_embeddings");
  const Tensor *head = checkpoint.find("lm_head.weight"), *embedding = checkpoint.find("model.embed_tokens.weight");
  if (tied == nullptr || !tied->is_bool() || !tied->boolean() || head == nullptr || embedding == nullptr) return;
  if (head->storage() == embedding->storage() && head->offset() == embedding->offset()) return;
  model.notes.push_back({"config.json",
                         "says that the head is the embedding, and lm_head.weight is stored all the same; "
                         "transformers drops it",
                         Note::Kind::remark});
}

}  // namespace

ModelInfo model_info(const Checkpoint& checkpoint, const OpenOptions& given) {
  ModelInfo model;
  read_gguf_numbers(checkpoint.typed_metadata, model);
  const OpenOptions options = options_for(checkpoint.target, given);
  auto names = options.files->list(checkpoint.target);
  if (!names) return model;
  const SmallFiles files(checkpoint.target, *std::move(names), *options.files, model.notes);
  const bool is_gguf = !model.type.empty();
  if (const Json config = files.json("config.json"); !config.is_null() && !is_gguf) {
    read_config_numbers(config, model);
    note_dropped_head(config, checkpoint, model);
  }
  if (!is_gguf) read_tokenizer(files, model);
  read_generation(files, model);
  read_adapter(files, model);
  if (files.has("model_index.json")) read_pipeline(checkpoint.target, options, model);
  return model;
}

std::optional<std::uint64_t> kv_cache_bytes(const ModelInfo& model, std::uint64_t context) {
  if (model.caches.empty()) return std::nullopt;
  std::optional<std::uint64_t> total = 0;
  for (const ModelInfo::Cache& cache : model.caches) {
    const std::uint64_t tokens = std::min(context, cache.window.value_or(context));
    auto bytes = checked_mul(cache.values_per_token, std::uint64_t{2});
    if (bytes) bytes = checked_mul(*bytes, tokens);
    if (bytes) bytes = checked_mul(*bytes, cache.layers);
    if (!bytes) return std::nullopt;
    total = checked_add(*total, *bytes);
    if (!total) return std::nullopt;
  }
  return total;
}

}  // namespace ballast
