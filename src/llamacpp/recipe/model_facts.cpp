#include "llamacpp/recipe/model_facts.hpp"

#include <array>
#include <optional>
#include <string_view>

#include "core/checked.hpp"

namespace ballast::llamacpp {
namespace {

struct Large {
  std::string_view architecture;
  std::uint64_t blocks;
  bool shares_kv_heads = false;  // only if several heads share one of keys and values
};
constexpr std::array k70b = {Large{"llama", 80, true}, Large{"llama-embed", 80, true},
                             Large{"qwen2", 80},       Large{"olmo", 80},
                             Large{"deci", 80},        Large{"jais2", 68}};

// A number, or the first of an array with one for each block.
std::optional<std::uint64_t> first_number(const TypedMetadata& metadata, const std::string& key) {
  const MetadataEntry* entry = metadata.find(key);
  if (entry == nullptr) return std::nullopt;
  if (!entry->is_array()) return entry->as_uint();
  const auto first = entry->items().begin();
  return first == std::default_sentinel ? std::nullopt : (*first).as_uint();
}

// Two architectures have more layers than blocks of tensors: one goes through them several times, the other has a
// router behind them.
std::uint64_t layers_of(const std::string& architecture, std::uint64_t blocks, std::uint64_t loops) {
  if (architecture == "nanbeige") return checked_mul(blocks, loops).value_or(blocks);
  if (architecture == "graniteswitch") return checked_add(blocks, 1).value_or(blocks);
  return blocks;
}

}  // namespace

bool ModelFacts::is_70b() const noexcept {
  for (const Large& row : k70b) {
    if (row.architecture == architecture && row.blocks == blocks) return !row.shares_kv_heads || heads != kv_heads;
  }
  return false;
}

ModelFacts model_facts(const TypedMetadata& metadata) {
  ModelFacts facts;
  facts.architecture = metadata.find_string("general.architecture").value_or("");
  const auto number = [&](const char* key) { return first_number(metadata, facts.architecture + key); };
  facts.blocks = layers_of(facts.architecture, number(".block_count").value_or(0), number(".num_loops").value_or(1));
  facts.heads = number(".attention.head_count").value_or(0);
  facts.kv_heads = number(".attention.head_count_kv").value_or(facts.heads);
  facts.experts = number(".expert_count").value_or(0);
  return facts;
}

}  // namespace ballast::llamacpp
