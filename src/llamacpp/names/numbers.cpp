#include "llamacpp/names/numbers.hpp"

#include <charconv>

#include <fmt/format.h>
#include <ballast/error.hpp>

#include "core/remedy.hpp"

namespace ballast::names {
namespace {

// The options may only add to what the file says, not contradict it.
std::uint64_t agreed(const std::string& key, std::optional<std::uint64_t> said, std::uint64_t asked) {
  if (said && *said != asked)
    throw Error(Errc::mismatch, fmt::format("the file says {} for {}, not {}", *said, key, asked))
        .hint("leave the option out");
  return asked;
}

}  // namespace

Numbers::Numbers(const Checkpoint& checkpoint, const Architecture& architecture, const NameOptions& options)
    : checkpoint_(checkpoint),
      options_(options),
      prefix_(std::string(architecture.gguf) + "."),
      heads_key_(prefix_ + "attention.head_count"),
      keys_key_(heads_key_ + "_kv") {}

// A number for the whole model or for each block, or one that safetensors keeps as text.
std::optional<std::uint64_t> Numbers::find_whole(std::string_view key, std::uint64_t block) const {
  const MetadataEntry* field = checkpoint_.typed_metadata.find(key);
  if (field == nullptr && !checkpoint_.metadata.contains(key)) field = options_.numbers.find(key);
  if (field != nullptr) {
    if (!field->is_array()) return field->as_uint();
    const std::size_t size = width(field->element_type);
    if (size == 0 || block >= field->count) return std::nullopt;
    return MetadataValue{field->element_type, field->bytes.subspan(static_cast<std::size_t>(block) * size, size)}
        .as_uint();
  }
  const auto entry = checkpoint_.metadata.find(key);
  if (entry == checkpoint_.metadata.end()) return std::nullopt;
  const char *begin = entry->second.data(), *end = begin + entry->second.size();
  std::uint64_t number = 0;
  const auto [stop, error] = std::from_chars(begin, end, number);
  return error == std::errc() && stop == end ? std::optional(number) : std::nullopt;
}

std::optional<std::uint64_t> Numbers::find(std::string_view key, std::uint64_t block) const {
  return find_whole(prefix_ + std::string(key), block);
}

std::uint64_t Numbers::get(std::string_view key) const {
  const auto found = find(key);
  constexpr std::uint64_t kMost = 1ull << 31;  // no model has more of anything, and products cannot wrap
  if (found && *found != 0 && *found < kMost) return *found;
  throw Error(Errc::invalid_argument, fmt::format("how it is cut depends on {}{}, and nothing says that", prefix_, key))
      .hint("convert the folder that has its config.json");
}

std::uint64_t Numbers::main_blocks() const {
  const std::uint64_t blocks = find("block_count").value_or(0), extra = find("nextn_predict_layers").value_or(0);
  return blocks > extra ? blocks - extra : 0;
}

std::optional<std::uint64_t> Numbers::find_heads(std::uint64_t block) const {
  const auto said = find_whole(heads_key_, block);
  return options_.head_count != 0 ? agreed(heads_key_, said, options_.head_count) : said;
}

std::optional<std::uint64_t> Numbers::find_heads_of_keys(std::uint64_t block) const {
  const auto said = find_whole(keys_key_, block);
  return options_.head_count_kv != 0 ? agreed(keys_key_, said, options_.head_count_kv) : said;
}

std::uint64_t Numbers::heads(std::uint64_t block) const {
  if (const auto found = find_heads(block)) return *found;
  throw Error(Errc::invalid_argument, fmt::format("its rows go by heads, and nothing says {}", heads_key_))
      .hint("give it, such as " + mention(Remedy::heads, "32") + "; config.json calls it num_attention_heads");
}

std::uint64_t Numbers::heads_of_keys(std::uint64_t block) const {
  const auto found = find_heads_of_keys(block);
  return found ? *found : heads(block);
}

bool Numbers::assumes_heads_of_keys(std::uint64_t block) const {
  return !find_heads_of_keys(block) && !find_whole(heads_key_, block);
}

void Numbers::throw_unknown_keys() const {
  throw Error(Errc::invalid_argument, fmt::format("its rows go by heads, and nothing says {}", keys_key_))
      .hint("give it, such as " + mention(Remedy::kv_heads, "8") + "; config.json calls it num_key_value_heads");
}

}  // namespace ballast::names
