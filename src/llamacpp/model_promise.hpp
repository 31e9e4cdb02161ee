// What a config.json, or the metadata of a GGUF, promises of the tensors of a model.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <ballast/json.hpp>
#include <ballast/names.hpp>
#include <ballast/typed_metadata.hpp>

#include "llamacpp/config/model_config.hpp"
#include "llamacpp/model_folder.hpp"
#include "llamacpp/names/tables.hpp"

namespace ballast::llamacpp {

struct ModelPromise {
  const names::Architecture* architecture = nullptr;
  std::string_view where;               // "config.json", or "the metadata" of a GGUF
  NameStyle style;                      // of the tensors' names
  TypedMetadata sizes;                  // with llama.cpp's keys
  std::optional<std::uint64_t> tokens;  // how many there are
  std::optional<bool> is_tied;          // whether the head is the embedding
  bool speaks = false;                  // whether there is a head
};

// Of a GGUF; none if no table knows the architecture.
std::optional<ModelPromise> promise_of(const TypedMetadata& metadata, std::string_view architecture);
// Of a config.json; its architecture must be one that a table knows.
ModelPromise promise_of(const ModelFolder& folder, const ModelConfig& config);

// Why there is none, as the end of a sentence.
std::string no_table_of(std::string_view architecture);
std::string why_unknown(const Json& config);

}  // namespace ballast::llamacpp
