#include "peft/embeddings.hpp"

#include <algorithm>

#include "peft/names.hpp"
#include "peft/targets.hpp"

namespace ballast::peft {
namespace {

std::string_view last_segment(std::string_view module) { return module.substr(module.rfind('.') + 1); }

// Whether this is the weight of a module of a PeftModel. The copy that a prompt encoder has beside the model is not,
// nor is anything of an adapter, which may be called like anything.
bool is_module_weight(std::string_view name, const Tensor& tensor) {
  if (!name.starts_with(kRoot) || !name.ends_with(".weight") || tensor.rank() != 2) return false;
  for (std::string_view rest = name; !rest.empty();) {
    const std::string_view segment = take_segment(rest);
    if (segment == "modules_to_save" || is_any_parameter(segment)) return false;
  }
  return true;
}

std::string_view adapted_module(std::string_view name) {
  return without_ending(without_ending(module_of(name), kBaseLayer), ".token_adapter");
}

// The original of a module that modules_to_save replaces shows that there is one.
std::string_view table_of(std::string_view name) { return without_ending(adapted_module(name), ".original_module"); }

}  // namespace

bool is_embedding(std::string_view module) {
  return ends_with_name(module, "embed_tokens") || ends_with_name(module, "lm_head");
}

bool is_word_embedding(std::string_view module) {
  return has_word(
      "embed_tokens wte word_embeddings tok_embeddings embed_in shared embedding embeddings tokens_embed "
      "token_embedding token_embeddings word_embedding token_embd emb",
      last_segment(module));
}

bool is_lookup_table(std::string_view module) {
  constexpr std::string_view kPositions =
      "wpe embed_positions position_embeddings position_embedding token_type_embeddings positions_embed";
  return is_word_embedding(module) || has_word(kPositions, last_segment(module));
}

bool may_be_output_head(std::string_view module) {
  return has_word(
      "lm_head embed_out output output_layer head decoder lm_loss vocab_projector generator_lm_head proj_out",
      last_segment(module));
}

Embeddings::Embeddings(const StateDict& state) {
  for (const auto& [name, tensor] : state) {
    if (is_module_weight(name, tensor) && is_word_embedding(table_of(name)))
      words_.emplace(table_of(name), tensor.shape());
  }
  // If encoder and decoder share a table, their own are views of it.
  const auto is_shared = [](const auto& entry) { return entry.first.ends_with(".shared"); };
  if (std::ranges::any_of(words_, is_shared))
    std::erase_if(words_, [&](const auto& entry) { return !is_shared(entry); });
  for (const auto& [name, tensor] : state) {
    const std::string_view module = table_of(name);
    if (!is_module_weight(name, tensor) || is_word_embedding(module)) continue;
    const auto& shape = tensor.shape();  // clang 14 captures no name of a structured binding
    const auto has_shape = [&](const auto& entry) { return entry.second == shape; };
    if (is_embedding(module) || (may_be_output_head(module) && std::ranges::any_of(words_, has_shape)))
      heads_.emplace(module, shape);
  }
}

bool Embeddings::have_rows(std::uint64_t count) const {
  const auto has_rows = [&](const auto& entry) { return entry.second[0] == count; };
  return std::ranges::all_of(words_, has_rows) && std::ranges::all_of(heads_, has_rows);
}

bool Embeddings::contain(std::string_view name) const {
  const std::string_view module = adapted_module(name);
  return words_.contains(module) || heads_.contains(module);
}

}  // namespace ballast::peft
