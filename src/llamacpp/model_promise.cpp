#include "llamacpp/model_promise.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <ballast/checkpoint.hpp>

#include "core/text.hpp"
#include "llamacpp/keys/hyperparameters.hpp"
#include "llamacpp/names/match.hpp"

namespace ballast::llamacpp {
namespace {

std::optional<std::uint64_t> count_in(const Json* value) {
  return value != nullptr && value->is_integer() && value->number() > 0 ? std::optional(value->count()) : std::nullopt;
}

// What config.json calls the model, for a sentence about a model that no table has.
std::string class_in(const Json& config) {
  const Json* classes = config.find("architectures");
  if (classes != nullptr && classes->is_list() && !classes->list().empty() && classes->list()[0].is_text())
    return classes->list()[0].text();
  const Json* type = config.find("model_type");
  return type != nullptr && type->is_text() ? type->text() : std::string();
}

}  // namespace

std::optional<ModelPromise> promise_of(const TypedMetadata& metadata, std::string_view architecture) {
  const auto all = names::architectures();
  const auto found = std::ranges::find(all, architecture, &names::Architecture::gguf);
  if (found == all.end()) return std::nullopt;
  ModelPromise promise{&*found, "the metadata", NameStyle::gguf, metadata, {}, {}, false};
  if (const MetadataEntry* tokens = metadata.find("tokenizer.ggml.tokens")) promise.tokens = tokens->count;
  return promise;
}

ModelPromise promise_of(const ModelFolder& folder, const ModelConfig& config) {
  ModelPromise promise{
      names::find_architecture(config.architecture), "config.json", NameStyle::huggingface, {}, {}, {}, false};
  std::vector<Note> ignored;
  add_hyperparameters(folder, config, 0, promise.sizes, ignored);
  promise.tokens = count_in(config.find("vocab_size"));
  if (const Json* tied = config.find("tie_word_embeddings"); tied != nullptr && tied->is_bool())
    promise.is_tied = tied->boolean();
  promise.speaks = config.class_name.ends_with("ForCausalLM") || config.class_name.ends_with("LMHeadModel");
  return promise;
}

std::string no_table_of(std::string_view architecture) {
  return fmt::format("there is no table of {}", quote(architecture));
}

std::string why_unknown(const Json& config) {
  const std::string name = class_in(config);
  return name.empty() ? "it does not say which model it is of" : no_table_of(name);
}

}  // namespace ballast::llamacpp
