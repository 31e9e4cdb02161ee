#include <ballast/gguf_model.hpp>

#include <utility>
#include <vector>

#include <fmt/format.h>
#include <ballast/error.hpp>
#include <ballast/remote.hpp>

#include "checkpoint/quantization/without_packing.hpp"
#include "core/text.hpp"
#include "llamacpp/about/general.hpp"
#include "llamacpp/check_model.hpp"
#include "llamacpp/config/model_config.hpp"
#include "llamacpp/keys/hyperparameters.hpp"
#include "llamacpp/model_folder.hpp"
#include "llamacpp/names/match.hpp"
#include "llamacpp/prepare.hpp"
#include "llamacpp/rope_tensors.hpp"
#include "llamacpp/tokenizer/tokenizer.hpp"

namespace ballast {
namespace {

using namespace llamacpp;

constexpr std::uint32_t kFileTypeOfF32 = 0;  // a recipe sets the one that it makes
constexpr std::uint32_t kPoolingOfRerankers = 4;

void append(TypedMetadata& all, const TypedMetadata& more) {
  for (const MetadataEntry& entry : more) all.set(entry);
}

// Files of safetensors say which framework wrote them; a GGUF has no place for such words.
void forget_metadata(Checkpoint& model) {
  model.metadata.erase("format");
  if (model.metadata.empty()) return;
  model.notes.push_back(
      {model.target,
       fmt::format("left out, since they are not metadata of llama.cpp's: {} of the checkpoint, such as {}",
                   model.metadata.size(), quote(model.metadata.begin()->first)),
       Note::Kind::remark});
  model.metadata.clear();
}

ModelConfig config_of(const Checkpoint& model, const ModelFolder& folder) {
  ModelConfig config = read_model_config(folder);
  if (names::find_architecture(config.architecture) == nullptr)
    throw Error(Errc::unsupported, fmt::format("the class {} is not known", quote(config.class_name)))
        .in(folder.path("config.json"));
  std::vector<std::string_view> names;
  for (const auto& [name, tensor] : model) names.push_back(name);
  count_guessing_blocks(config, names);
  return config;
}

// Tensors that are computed come first, as the converter has them.
void add_computed(Checkpoint& model, const ModelConfig& config) {
  StateDict all;
  for (auto& [name, tensor] : rope_tensors(config)) all.insert(name, std::move(tensor));
  if (all.empty()) return;
  for (const auto& [name, tensor] : model) all.insert(name, tensor);
  model.tensors = std::move(all);
}

ParameterCounts parameters_of(const Checkpoint& model) {
  std::vector<CountedTensor> tensors;
  for (const auto& [name, tensor] : model) tensors.push_back({name, {tensor.shape().begin(), tensor.shape().end()}});
  return count_parameters(tensors);
}

}  // namespace

ModelClass model_class(const std::string& target, const OpenOptions& options) {
  const ModelFolder folder(target, options_for(target, options));
  const auto json = folder.json("config.json");
  if (!json) return {};
  try {
    const ModelConfig config = make_model_config(*json, folder.name());
    const bool is_known = names::find_architecture(config.architecture) != nullptr;
    return {config.class_name, is_known ? config.architecture : std::string()};
  } catch (const Error&) {
    return {};  // it is the configuration of something else than a model
  }
}

Checkpoint to_gguf_model(Checkpoint model, const GgufModelOptions& options) {
  model = without_packing(std::move(model));
  const ModelFolder folder(model.target, options_for(model.target, options.open));
  const ModelConfig config = config_of(model, folder);
  const std::string& architecture = config.architecture;

  TypedMetadata tokenizer, sizes;
  std::vector<Note> notes;
  add_tokenizer(folder, config.values, config.class_name, architecture, {options.pre_tokenizer}, tokenizer, notes);
  add_hyperparameters(folder, config, kFileTypeOfF32, sizes, notes);

  forget_metadata(model);
  model = prepare(std::move(model), folder, config.values, config.class_name, architecture, tokenizer);
  model.typed_metadata = sizes;  // names and values depend on them
  model.typed_metadata.set(MetadataEntry::of("general.architecture", architecture));
  model = to_names(std::move(model), NameStyle::gguf, {.refuse_unknown = true});
  add_computed(model, config);
  if (sizes.find_uint(architecture + ".pooling_type") == kPoolingOfRerankers) add_answers(model, tokenizer);

  const MetadataEntry* tokens = tokenizer.find("tokenizer.ggml.tokens");
  check_model(model, config, tokens == nullptr ? 0 : tokens->count);

  TypedMetadata all;
  add_general(folder, config, parameters_of(model), all, notes);
  append(all, sizes);
  append(all, tokenizer);
  model.typed_metadata = std::move(all);
  model.notes.insert(model.notes.end(), notes.begin(), notes.end());
  return model;
}

NameOptions completed(NameOptions options, const std::string& target, const OpenOptions& open) {
  const std::string architecture = model_class(target, open).architecture;
  const names::Architecture *own = names::find_architecture(architecture),
                            *asked = names::find_architecture(options.architecture);
  const bool is_other =
      !options.architecture.empty() && (asked == nullptr || own == nullptr || asked->gguf != own->gguf);
  if (own == nullptr || is_other) return options;
  const ModelFolder folder(target, options_for(target, open));
  std::vector<Note> ignored;
  add_hyperparameters(folder, read_model_config(folder), kFileTypeOfF32, options.numbers, ignored);
  if (options.architecture.empty()) options.architecture = architecture;
  return options;
}

}  // namespace ballast
