// The way there, once more, with the configuration that was made.
#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ballast/error.hpp>
#include <ballast/source.hpp>

#include "core/text.hpp"
#include "llamacpp/back/back_model.hpp"
#include "llamacpp/config/model_config.hpp"
#include "llamacpp/keys/hyperparameters.hpp"
#include "llamacpp/model_folder.hpp"

namespace ballast::llamacpp::back {
namespace {

constexpr std::string_view kFolder = "memory://model", kConfig = "memory://model/config.json";

// A folder in memory that has nothing but a config.json.
class ConfigAlone : public Files {
 public:
  explicit ConfigAlone(const Json& config) : text_(to_string(config)) {}

  SourcePtr open(const std::string& name) const override {
    if (!exists(name)) throw Error(Errc::not_found, "no such file").in(name);
    const auto bytes = std::as_bytes(std::span(text_));
    return memory_source({bytes.begin(), bytes.end()}, name);
  }
  bool exists(const std::string& name) const override { return name == kConfig; }
  std::optional<std::vector<std::string>> list(const std::string& name) const override {
    return name == kFolder ? std::optional(std::vector<std::string>{"config.json"}) : std::nullopt;
  }

 private:
  std::string text_;
};

TypedMetadata keys_of(const Json& config, const GgufFacts& facts) {
  OpenOptions options;
  options.files = std::make_shared<ConfigAlone>(config);
  const ModelFolder folder(std::string(kFolder), options);
  ModelConfig read = read_model_config(folder);
  if (read.architecture != facts.architecture())
    throw Error(Errc::mismatch, "the class is of the architecture \"" + read.architecture + "\"");
  read.guessing_blocks = facts.guessing_blocks();
  TypedMetadata keys;
  std::vector<Note> ignored;
  add_early_keys(read, keys);
  add_hyperparameters(folder, read, 0, keys, ignored);
  return keys;
}

// Defaults of a class are not the sizes of this model.
void refuse_made_up_sizes(BackCheck& result, const std::string& prefix) {
  for (const std::string_view key :
       {"block_count", "embedding_length", "feed_forward_length", "attention.head_count"}) {
    const std::string whole = prefix + std::string(key);
    if (std::ranges::find(result.added, whole) == result.added.end()) continue;
    result.is_possible = false;
    result.reason = "there is no " + quote(whole);
    return;
  }
}

}  // namespace

BackCheck check(const Json& config, const GgufFacts& facts) {
  BackCheck result;
  TypedMetadata keys;
  try {
    keys = keys_of(config, facts);
  } catch (const Error& error) {
    result.reason = error.message();
    return result;
  }
  result.is_possible = true;
  const std::string prefix = facts.architecture() + ".";
  const TypedMetadata& own = facts.gguf().typed_metadata;
  for (const MetadataEntry& entry : own) {
    if (!entry.key.starts_with(prefix)) continue;
    const MetadataEntry* again = keys.find(entry.key);
    if (again == nullptr || text(*again) != text(entry)) result.lost.emplace_back(entry.key);
  }
  for (const MetadataEntry& entry : keys) {
    if (entry.key.starts_with(prefix) && !own.contains(entry.key)) result.added.emplace_back(entry.key);
  }
  refuse_made_up_sizes(result, prefix);
  return result;
}

}  // namespace ballast::llamacpp::back
