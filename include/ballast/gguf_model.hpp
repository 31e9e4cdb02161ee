// A model of Hugging Face as a GGUF that llama.cpp runs: its tensors under llama.cpp's names, its sizes, its tokenizer.
//
// The functions may be called from several threads at once. They read the small files beside the weights, and (for two
// architectures) compare tensors that may be left out; all else is lazy. The tensors that to_gguf_model() returns share
// the storages of those that it is given and keep them alive.
//
// Example:
//   const Checkpoint model = to_gguf_model(open("Llama-3.2-1B/"));
//   save(apply_recipe(model, {.type = "Q4_K_M"}), "model.gguf");
//   // and the way back, with a config.json
//   const auto [tensors, config] = to_huggingface_model(cast(open("model.gguf"), DType::f32));
//   SavePlan plan = plan_save(cast(tensors, DType::bf16), "model/");
//   add_model_config(plan, config);
//   execute(plan);
#pragma once

#include <string>

#include <ballast/checkpoint.hpp>
#include <ballast/json.hpp>
#include <ballast/names.hpp>
#include <ballast/open_options.hpp>
#include <ballast/save_plan.hpp>

namespace ballast {

struct GgufModelOptions {
  OpenOptions open{};           // where the files beside the weights are found
  std::string pre_tokenizer{};  // as llama.cpp calls it, if tokenizer.json has one that is not known
};

// The class of a model, as its config.json calls it: "LlamaForCausalLM"; and what llama.cpp calls it: "llama".
struct ModelClass {
  std::string name{};          // empty if no config.json says it
  std::string architecture{};  // empty if the class is not known
};

// What the config.json in or beside `target` says. A file that is no JSON is Errc::malformed.
ModelClass model_class(const std::string& target, const OpenOptions& options = {});

// The model with the names and values that llama.cpp has for them, and with the metadata that its converter makes of
// config.json, generation_config.json, the tokenizer and the model card beside the weights. The folder is that of
// Checkpoint::target. Towers for images and sounds are left out, with a note. apply_recipe() (recipe.hpp) chooses the
// types of the tensors.
//
// Errc::not_found if a file is missing that llama.cpp could not do without; Errc::unsupported for an architecture or a
// tokenizer that is not known, for weights in parts that are not decoded, and for a tensor that llama.cpp has no place
// for; Errc::malformed if the weights contradict config.json: blocks that are missing, an embedding of another size.
Checkpoint to_gguf_model(Checkpoint model, const GgufModelOptions& options = {});

// The options completed with what the config.json in or beside `target` says: the architecture and its numbers. The
// options as they are if there is no such file, if its architecture is not known, or if they name another one.
NameOptions completed(NameOptions options, const std::string& target, const OpenOptions& open);

// The config.json of transformers that belongs to a GGUF: its class, sizes, rotary positions, experts, special tokens,
// as far as the metadata and the tensors determine them. Null for an architecture that is not known, and if numbers are
// missing that every model of it has.
Json model_config_of(const Checkpoint& gguf);

// The GGUF as a model of transformers.
struct HuggingFaceModel {
  Checkpoint model;  // its tensors, with the names and values of Hugging Face: see to_names()
  Json config;       // as of model_config_of()
};

// Factors of rotary positions, which are tensors in a GGUF, are left out if the configuration says them. Notes say of
// which class the model is, what the configuration does not say, or why there is none, and that the tokenizer is not
// written back. Throws what to_names() throws.
HuggingFaceModel to_huggingface_model(Checkpoint gguf, const NameOptions& options = {});

// Adds config.json to what is written, in the folder of the first file, with the dtype that most bytes have. Nothing if
// `config` is null.
void add_model_config(SavePlan& plan, Json config);

}  // namespace ballast
