// The tables of keys, read backwards.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "llamacpp/back/back_model.hpp"
#include "llamacpp/config/json_values.hpp"

namespace ballast::llamacpp::back {
namespace {

// The last row of a key counts, as on the way there.
std::vector<const KeyRow*> last_rows(const ArchitectureKeys& keys) {
  std::vector<const KeyRow*> rows;
  for (const auto& table : keys.tables) {
    for (const KeyRow& row : table) {
      if (row.write != nullptr) continue;
      std::erase_if(rows, [&](const KeyRow* other) { return other->key == row.key; });
      rows.push_back(&row);
    }
  }
  return rows;
}

void take_row(BackModel& model, const KeyRow& row) {
  if (row.value != nullptr) return undo_formula(model, row);
  if (row.sources.empty()) return;  // the same in all models
  model.set(model.name_of(row.sources), model.facts.value(row.key));
}

// llama.cpp takes as many heads of keys as of queries if nothing is said. The classes have other defaults.
void add_heads_of_keys(BackModel& model) {
  constexpr std::string_view kName = "num_key_value_heads";
  const bool needs_it = !is_null(model.default_of(kName)) && model.config.find(kName) == nullptr;
  if (needs_it) model.set(kName, model.facts.value("attention.head_count"));
}

}  // namespace

void add_keys(BackModel& model) {
  const ArchitectureKeys* keys = find_architecture_keys(model.facts.architecture());
  if (keys == nullptr) return;
  for (const KeyRow* row : last_rows(*keys)) take_row(model, *row);
  add_heads_of_keys(model);
  // The matrix is what transformers will look at.
  if (const auto words = model.facts.rows("token_embd.weight")) model.set("vocab_size", *words);
}

void add_tokens(BackModel& model) {
  constexpr std::pair<std::string_view, std::string_view> kTokens[] = {
      {"bos_token_id", "tokenizer.ggml.bos_token_id"},       {"eos_token_id", "tokenizer.ggml.eos_token_id"},
      {"pad_token_id", "tokenizer.ggml.padding_token_id"},   {"unk_token_id", "tokenizer.ggml.unknown_token_id"},
      {"sep_token_id", "tokenizer.ggml.seperator_token_id"}, {"cls_token_id", "tokenizer.ggml.cls_token_id"},
  };
  for (const auto& [name, key] : kTokens) {
    if (const auto id = model.facts.count(key)) model.set(name, *id);
  }
}

}  // namespace ballast::llamacpp::back
