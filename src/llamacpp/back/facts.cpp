#include "llamacpp/back/facts.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>

#include "core/text.hpp"

namespace ballast::llamacpp::back {
namespace {

constexpr std::uint64_t kMostItems = 1 << 16;    // of a list with one for each block
constexpr std::uint64_t kMostFactors = 1 << 12;  // of rotary positions

Json json_of_value(const MetadataValue& value) {
  switch (value.type) {
    case MetadataType::boolean: return value.as_bool().value_or(false);
    case MetadataType::f32: {
      const auto number = static_cast<float>(value.as_double().value_or(NAN));
      return std::isfinite(number) ? Json(shortest(number)) : Json();
    }
    case MetadataType::f64: {
      const double number = value.as_double().value_or(NAN);
      return std::isfinite(number) ? Json(number) : Json();
    }
    case MetadataType::string: {
      const std::string_view text = value.as_string().value_or("");
      return valid_utf8_prefix(text) == text.size() ? Json(text) : Json();
    }
    default: break;
  }
  if (const auto count = value.as_uint()) return *count;
  const auto number = value.as_int();
  return number ? Json(*number) : Json();
}

Json json_of_entry(const MetadataEntry& entry) {
  if (!entry.is_array()) return json_of_value(entry.value());
  if (entry.count > kMostItems) return {};
  Json::List items;
  for (const MetadataValue item : entry.items()) items.push_back(json_of_value(item));
  return items;
}

}  // namespace

double shortest(float value) {
  char text[32];
  const auto end = std::to_chars(std::begin(text), std::end(text), value).ptr;
  double number = 0;
  std::from_chars(std::begin(text), end, number);
  return number;
}

GgufFacts::GgufFacts(const Checkpoint& gguf)
    : gguf_(gguf), architecture_(gguf.typed_metadata.find_string("general.architecture").value_or("")) {}

const MetadataEntry* GgufFacts::find(std::string_view key) const {
  const bool is_whole = key.starts_with("general.") || key.starts_with("tokenizer.");
  return gguf_.typed_metadata.find(is_whole ? std::string(key) : architecture_ + "." + std::string(key));
}

Json GgufFacts::value(std::string_view key) const {
  const MetadataEntry* entry = find(key);
  return entry == nullptr ? Json() : json_of_entry(*entry);
}

std::optional<std::uint64_t> GgufFacts::count(std::string_view key) const {
  constexpr std::uint64_t kMost = 1ull << 32;  // what a config.json may have, and products of two cannot wrap
  const MetadataEntry* entry = find(key);
  const auto found = entry == nullptr ? std::nullopt : entry->as_uint();
  return found && *found < kMost ? found : std::nullopt;
}

std::optional<double> GgufFacts::number(std::string_view key) const {
  const MetadataEntry* entry = find(key);
  const auto found = entry == nullptr ? std::nullopt : entry->as_double();
  return found && std::isfinite(*found) ? found : std::nullopt;
}

std::string GgufFacts::text(std::string_view key) const {
  const MetadataEntry* entry = find(key);
  return std::string(entry == nullptr ? "" : entry->as_string().value_or(""));
}

std::uint64_t GgufFacts::guessing_blocks() const {
  const std::uint64_t blocks = count("block_count").value_or(0);
  return std::min(blocks, count("nextn_predict_layers").value_or(0));
}

std::uint64_t GgufFacts::main_blocks() const { return count("block_count").value_or(0) - guessing_blocks(); }

bool GgufFacts::has_ending(std::string_view ending) const {
  return std::any_of(gguf_.begin(), gguf_.end(), [&](const auto& entry) { return entry.name.ends_with(ending); });
}

std::optional<std::uint64_t> GgufFacts::rows(std::string_view tensor) const {
  const Tensor* found = gguf_.find(tensor);
  return found == nullptr || found->rank() == 0 ? std::nullopt : std::optional(found->shape()[0]);
}

std::vector<float> GgufFacts::factors(std::string_view tensor) const {
  const Tensor* found = gguf_.find(tensor);
  if (found == nullptr || found->numel() > kMostFactors) return {};
  std::vector<float> values = found->values<float>();
  const bool are_usable = std::ranges::all_of(values, [](float value) { return std::isfinite(value) && value > 0; });
  return are_usable ? values : std::vector<float>();
}

}  // namespace ballast::llamacpp::back
