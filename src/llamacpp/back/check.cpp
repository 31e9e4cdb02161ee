// The way there, once more, with the configuration that was made.
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ballast/error.hpp>
#include <ballast/source.hpp>

#include "llamacpp/back/back_model.hpp"
#include "llamacpp/hyperparameters.hpp"
#include "llamacpp/model_config.hpp"
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
  for (const MetadataEntry& entry : keys) result.added += entry.key.starts_with(prefix) && !own.contains(entry.key);
  return result;
}

}  // namespace ballast::llamacpp::back
