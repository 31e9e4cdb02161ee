#include <ballast/names.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <ballast/error.hpp>

#include <algorithm>
#include <utility>

#include "checkpoint/quantization/without_packing.hpp"
#include "core/remedy.hpp"
#include "core/text.hpp"
#include "llamacpp/names/match.hpp"
#include "llamacpp/names/numbers.hpp"
#include "llamacpp/names/renaming.hpp"

namespace ballast {
namespace {

using names::Architecture;
using names::Numbers;

constexpr std::string_view kArchitectureKey = "general.architecture";

std::string known_list() { return fmt::format("{}", fmt::join(architectures_with_names(), ", ")); }

// If the caller asks for an architecture that has no table, that is an error; if the file says one, it is only noted.
const Architecture* choose_architecture(Checkpoint& checkpoint, const std::string& asked) {
  const std::string_view said = names::architecture_in(checkpoint);
  if (!asked.empty()) {
    const Architecture* found = names::find_architecture(asked);
    if (found == nullptr)
      throw Error(Errc::invalid_argument, fmt::format("no names are known for the architecture {}", quote(asked)))
          .hint("known are " + known_list());
    const Architecture* own = names::find_architecture(said);
    if (own != nullptr && std::string_view(own->gguf) != found->gguf)
      throw Error(Errc::mismatch,
                  fmt::format("the file says that it is of the architecture {}, not {}", quote(said), quote(asked)))
          .hint("leave " + mention(Remedy::architecture) + " out");
    return found;
  }
  if (said.empty()) {
    throw Error(Errc::invalid_argument, "nothing says of which architecture the tensors are")
        .hint("name it, such as " + mention(Remedy::architecture, "llama") + "; known are " + known_list());
  }
  const Architecture* found = names::find_architecture(said);
  if (!found) {
    checkpoint.notes.push_back(
        {checkpoint.target,
         fmt::format("no names are known for the architecture {}: all stay as they are", quote(said)),
         Note::Kind::remark});
  }
  return found;
}

// Keeps what llama.cpp, and the way back, will look for.
void keep_options(Checkpoint& checkpoint, const Architecture& architecture, const NameOptions& options) {
  const Numbers numbers(checkpoint, architecture, options);
  const auto keep_number = [&](const std::string& key, std::uint64_t count) {
    if (count == 0 || checkpoint.typed_metadata.find_uint(key) == count) return;
    checkpoint.typed_metadata.remove(key);  // it may be an array with one number for each block
    checkpoint.typed_metadata.set_from_text(key, std::to_string(count));
  };
  if (checkpoint.typed_metadata.find_string(kArchitectureKey) != architecture.gguf)
    checkpoint.typed_metadata.set(MetadataEntry::of(kArchitectureKey, architecture.gguf));
  keep_number(numbers.heads_key(), options.head_count);
  keep_number(numbers.keys_key(), options.head_count_kv);
}

}  // namespace

bool has_gguf_names(const Checkpoint& checkpoint) {
  return checkpoint.format == Format::gguf && std::any_of(checkpoint.begin(), checkpoint.end(), [](const auto& entry) {
           return entry.name.starts_with("blk.");
         });
}

NameOptions completed(NameOptions options, const Checkpoint& base) {
  const Architecture* architecture = names::find_architecture(base, options);
  if (architecture == nullptr) return options;
  if (options.architecture.empty()) options.architecture = architecture->gguf;
  // Arrays with one number for each block do not fit into the options.
  const NameOptions none;
  const Numbers numbers(base, *architecture, none);
  const auto says = [&](const std::string& key) {
    return base.typed_metadata.find(key) || base.metadata.contains(key);
  };
  const auto number = [&](const std::string& key) {
    const MetadataEntry* field = base.typed_metadata.find(key);
    const auto found = numbers.find(std::string_view(key).substr(architecture->gguf.size() + 1));
    return field != nullptr && field->is_array() ? 0 : found.value_or(0);
  };
  const bool says_keys = says(numbers.keys_key());
  if (options.head_count_kv == 0) options.head_count_kv = number(says_keys ? numbers.keys_key() : numbers.heads_key());
  if (options.head_count == 0) options.head_count = number(numbers.heads_key());
  const std::string prefix = std::string(architecture->gguf) + ".";
  for (const MetadataEntry& entry : base.typed_metadata) {
    if (entry.key.starts_with(prefix)) options.numbers.set(entry);
  }
  return options;
}

std::vector<std::string_view> architectures_with_names() {
  std::vector<std::string_view> result;
  for (const Architecture& architecture : names::architectures()) result.push_back(architecture.name);
  return result;
}

Checkpoint to_names(Checkpoint checkpoint, NameStyle style, const NameOptions& options) {
  const Architecture* architecture = choose_architecture(checkpoint, options.architecture);
  if (!architecture) return checkpoint;
  if (style == NameStyle::gguf) checkpoint = without_packing(std::move(checkpoint));
  names::rename_tensors(checkpoint, *architecture, style, options);
  if (style == NameStyle::gguf) keep_options(checkpoint, *architecture, options);
  return checkpoint;
}

}  // namespace ballast
