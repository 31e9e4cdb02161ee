// Files hold the prompt that comes out of an encoder. CPT has the words of its context in one table and the changes
// that it learned, each no longer than is allowed, in another, which is added; a cartridge has its first tokens, which
// are not trained, in a table of their own.
#include <ballast/error.hpp>

#include <algorithm>
#include <cmath>

#include "core/remedy.hpp"
#include "core/text.hpp"
#include "layout/dimension_range.hpp"
#include "peft/computed.hpp"
#include "peft/files/special.hpp"
#include "peft/hints.hpp"
#include "peft/matrix.hpp"
#include "tensor/concat_storage.hpp"

namespace ballast::peft {
namespace {

// How long the change of each token may be that CPT learned. The configuration has a type for each token: one of the
// format, of the input, or another.
std::vector<float> longest_changes(const AdapterConfig& config, std::uint64_t tokens, std::uint64_t width) {
  const Json* types = config.find("cpt_tokens_type_mask");
  if (types != nullptr && (!types->is_list() || types->list().size() != tokens)) {
    throw Error(Errc::mismatch, "\"cpt_tokens_type_mask\" is not a list of " + std::to_string(tokens) +
                                    " types, one for each token of the prompt")
        .hint(kIsItTheConfig);
  }
  const double root = std::sqrt(config.number("token_dim", static_cast<double>(width)) / 2048);
  const auto format = static_cast<float>(config.number("opt_projection_format_epsilon", 0.1) * root);
  const auto input = static_cast<float>(config.number("opt_projection_epsilon", 0.1) * root);
  std::vector<float> longest;
  for (std::uint64_t i = 0; i < tokens; ++i) {
    const std::int64_t type = types == nullptr ? 1 : types->list()[i].integer();
    const std::int64_t kind = type <= 0 ? 0 : type % 4;
    longest.push_back(kind == 0 ? 1e-10f : kind == 2 ? input : format);
  }
  return longest;
}

// embedding + delta_embedding, whose rows are shortened to what is allowed.
Tensor learned_context(const Tensor& embedding, const Tensor& change, const AdapterConfig& config) {
  if (embedding.rank() != 2 || change.shape() != embedding.shape()) {
    throw Error(Errc::mismatch, "delta_embedding has the shape " + to_string(change.shape()) + ", but embedding has " +
                                    to_string(embedding.shape()))
        .hint(kWasItSavedWhole);
  }
  const std::uint64_t tokens = embedding.shape()[0], width = embedding.shape()[1];
  const DType dtype = embedding.dtype() == change.dtype() ? embedding.dtype() : DType::f32;
  const Tensor sum =
      computed(DType::f32, embedding.shape(), "what CPT learned, added", {embedding, change},
               [width, longest = longest_changes(config, tokens, width)](const std::vector<Tensor>& from) {
                 std::vector<float> values = read_floats(from[0]);
                 const std::vector<float> learned = read_floats(from[1]);
                 for (std::size_t row = 0; row < longest.size(); ++row) {
                   const auto change = std::span(learned).subspan(row * width, width);
                   const auto length = static_cast<float>(std::sqrt(sum_of_squares(change)));
                   const float factor = length > 0 ? longest[row] / std::max(length, longest[row]) : 1;
                   for (std::size_t i = row * width; i < (row + 1) * width; ++i) values[i] += learned[i] * factor;
                 }
                 return to_bytes(values);
               });
  return sum.to(dtype);
}

Tensor prompt_embeddings(const StateDict& state, const std::string& prefix, const PeftType& type,
                         const AdapterConfig& config) {
  const auto find = [&](const char* name) { return state.find(prefix + name); };
  if (type.name == "CARTRIDGE") {
    const Tensor *frozen = find("frozen_embedding"), *trained = find("trainable_embedding");
    return frozen == nullptr ? *trained : concatenated({*frozen, *trained}, 0);
  }
  const Tensor *embedding = find("embedding.weight"), *change = find("delta_embedding.weight");
  if (type.name == "CPT" && change != nullptr) return learned_context(*embedding, *change, config);
  return encoded_prompt(state, prefix);
}

}  // namespace

std::string_view first_of_encoder(const PeftType& type) {
  return type.name == "CARTRIDGE" ? "trainable_embedding" : "embedding.weight";
}

StateDict encoder_of(const StateDict& file, const PeftType& type, const AdapterConfig& config) {
  StateDict encoder;
  for (const auto& [name, tensor] : file) {
    if (!has_word(type.layer, name)) continue;
    if (name != "prompt_embeddings") {
      encoder.insert(name, tensor);
      continue;
    }
    if (type.name == "CARTRIDGE") {
      const double frozen = config.number("num_frozen_tokens", 1);
      const std::uint64_t tokens = tensor.rank() == 2 ? tensor.shape()[0] : 0;
      if (!(frozen >= 0) || frozen > static_cast<double>(tokens)) {
        throw Error(Errc::mismatch, "the cartridge has " + std::to_string(tokens) + " tokens, of which " +
                                        to_string(Json(frozen)) + " are to be frozen")
            .hint("correct \"num_frozen_tokens\" in adapter_config.json");
      }
      const auto first = static_cast<std::uint64_t>(frozen);
      if (first != 0) encoder.insert("frozen_embedding", dimension_range(tensor, 0, 0, first));
      encoder.insert("trainable_embedding", dimension_range(tensor, 0, first, tokens - first));
      continue;
    }
    encoder.insert("embedding.weight", tensor);
    // The changes are in the other table already.
    if (type.name == "CPT")
      encoder.insert("delta_embedding.weight",
                     Tensor::from_values<float>(DType::f32, tensor.shape(), std::vector<float>(tensor.numel())));
  }
  return encoder;
}

StateDict prompt_of(const StateDict& state, const PeftType& type, const AdapterConfig& config,
                    std::string_view adapter) {
  const std::string prefix = "prompt_encoder." + std::string(adapter) + ".";
  if (state.find(prefix + std::string(first_of_encoder(type))) == nullptr) {
    throw Error(Errc::not_found, "there is no prompt encoder " + quote(adapter) + " of the type " +
                                     std::string(type.name) + " in the state dict")
        .about(adapter)
        .hint("choose the adapter with " + mention(Remedy::adapter_name));
  }
  StateDict file;
  file.insert("prompt_embeddings", prompt_embeddings(state, prefix, type, config));
  for (const auto& [name, tensor] : state) {
    if (name.starts_with(prefix) && has_word(type.layer, name.substr(prefix.size())))
      file.insert(name.substr(prefix.size()), tensor);
  }
  return file;
}

}  // namespace ballast::peft
