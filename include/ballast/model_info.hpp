// ModelInfo: what a model says about itself beside its tensors: its class and sizes, its tokenizer, what it needs to
// run.
//
// model_info() reads the small files in the folder that was opened (config.json, generation_config.json,
// tokenizer_config.json, adapter_config.json, model_index.json), or the metadata of a GGUF; it reads no tensor. It may
// be called from several threads at once. The result owns everything in it.
//
// Example:
//   const ModelInfo model = model_info(open("Llama-3.2-1B/"));
//   const auto cache = kv_cache_bytes(model, 8192);  // 8192 tokens of context
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ballast/checkpoint.hpp>
#include <ballast/open_options.hpp>

namespace ballast {

struct ModelInfo {
  // What attention keeps of each token in layers that are alike.
  struct Cache {
    std::uint64_t layers = 0;
    std::uint64_t values_per_token = 0;   // of one layer: those of keys and values together
    std::optional<std::uint64_t> window;  // the layers keep no more tokens than this
  };
  struct Adapter {
    std::string type, base;  // "LORA", "meta-llama/Llama-3.2-1B"; empty if it does not say it
    std::optional<std::uint64_t> rank;
    std::optional<double> alpha;
  };

  std::string class_name;  // "LlamaForCausalLM", "StableDiffusionPipeline"; empty if nothing says it
  std::string type;        // "llama": model_type, or general.architecture of a GGUF
  std::string dtype;       // as config.json says it: "bfloat16"
  std::optional<std::uint64_t> layers, hidden_size, heads, kv_heads, head_size, vocabulary, context, experts,
      experts_used;
  std::vector<Cache> caches;  // empty if not enough is said to tell
  std::string tokenizer;      // "PreTrainedTokenizerFast, in tokenizer.json"
  bool has_chat_template = false;
  std::vector<std::pair<std::string, std::string>> generation;  // "temperature", "0.6"
  std::optional<Adapter> adapter;
  std::vector<std::pair<std::string, std::string>> parts;  // of a pipeline: its name and its class
  std::vector<Note> notes;                                 // files that cannot be read

  bool empty() const noexcept { return class_name.empty() && type.empty() && !adapter; }
};

ModelInfo model_info(const Checkpoint& checkpoint, const OpenOptions& options = {});

// What attention keeps of `context` tokens in F16: an upper bound for a model that attends to fewer of them than it
// says. Nothing if the model does not say enough.
std::optional<std::uint64_t> kv_cache_bytes(const ModelInfo& model, std::uint64_t context);

}  // namespace ballast
