#include "peft/embeddings.hpp"
#include "peft/files/special.hpp"
#include "peft/names.hpp"

namespace ballast::peft {
namespace {

// The first table of vectors of words, as the models of transformers call theirs.
const Tensor* find_word_embedding(const StateDict& state) {
  for (const auto& [name, tensor] : state) {
    if (name.ends_with(".weight") && tensor.rank() == 2 && is_word_embedding(module_of(name))) return &tensor;
  }
  return nullptr;
}

}  // namespace

void set_prompt(ModelState& model, const StateDict& state, const StateDict& file, const AdapterConfig& config,
                const std::string& adapter) {
  const PeftType& type = peft_type(config);
  StateDict& tensors = model.result.state;
  const bool is_adapted = has_prefix(state);
  for (const auto& [name, tensor] : state) {
    const bool has_name = is_adapted || name.starts_with("prompt_encoder.");
    tensors.insert(std::string(has_name ? "" : kRoot) + std::string(name), tensor);
  }
  if (const Tensor* embedding = find_word_embedding(tensors)) tensors.insert("word_embeddings.weight", *embedding);
  const std::string encoder = "prompt_encoder." + adapter + ".";
  for (const auto& [name, tensor] : encoder_of(file, type, config)) model.put(encoder + std::string(name), tensor);
  for (const auto& [name, tensor] : file) {
    if (has_word(type.layer, name)) continue;
    if (tensors.contains(name))
      model.replace(std::string(name), tensor);  // embeddings that were saved along
    else
      model.result.unexpected.emplace_back(name);
  }
  const std::string first = encoder + std::string(first_of_encoder(type));
  if (!tensors.contains(first)) model.result.missing.push_back(first);
}

// The model has its experts already. X-LoRA takes it in whole, as "lora_model".
void set_classifier(ModelState& model, const StateDict& state, const StateDict& file, const PeftType& type) {
  const std::string taken_in = std::string(kRoot) + "lora_model.model.";
  for (const auto& [name, tensor] : has_prefix(state) ? state : with_prefix(state)) {
    const bool is_outside = name.starts_with(kPrefix);
    model.insert(is_outside ? taken_in + std::string(name.substr(kPrefix.size())) : std::string(name), tensor);
  }
  for (const auto& [name, tensor] : file) {
    if (parse_file_name(type, name))
      model.put(std::string(name), tensor);
    else
      model.result.unexpected.emplace_back(name);
  }
}

}  // namespace ballast::peft
