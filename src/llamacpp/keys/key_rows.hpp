// KeyRow: one key of an architecture, and where its value comes from.
//
// An architecture is a list of tables of such rows. Most rows name the keys of config.json that the value may have;
// some have a formula. Types are those that the converter writes, and conditions are Python's.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <ballast/checkpoint.hpp>
#include <ballast/json.hpp>
#include <ballast/typed_metadata.hpp>

#include "llamacpp/config/model_config.hpp"
#include "llamacpp/model_folder.hpp"

namespace ballast::llamacpp {

// A model whose keys are being written.
struct HyperModel {
  const ModelFolder& folder;
  ModelConfig config;                 // an architecture may change values before they are written
  Json rope;                          // rope_parameters()
  std::uint64_t blocks = 0;           // all of them
  std::uint64_t guessing_blocks = 0;  // those at the end that guess ahead
  std::uint32_t file_type = 0;
  TypedMetadata& out;
  std::vector<Note>& notes;
};

enum class KeyKind : std::uint8_t {
  count,            // u32
  count_or_counts,  // u32, or a list of i32 with one for each block
  real,             // f32
  boolean,
  text,
  list,  // of whatever the items are
};

enum class KeyNeed : std::uint8_t {
  optional,  // left out if there is no value, or null
  required,
  if_true,  // left out also if it is 0, false or empty
};

struct KeyRow {
  std::string_view key;  // "llama." is put before it, unless it begins with "general." or "tokenizer."
  KeyKind kind = KeyKind::count;
  std::string_view sources{};  // the first of these that the config has; a space between two
  KeyNeed need = KeyNeed::optional;
  std::string_view otherwise{};                // JSON: the value if the config has none of the sources
  Json (*value)(const HyperModel&) = nullptr;  // instead of sources
  void (*write)(HyperModel&) = nullptr;        // writes keys itself; then there is only this
};

struct ArchitectureKeys {
  std::string_view architecture;
  void (*prepare)(HyperModel&);  // null if nothing is to be done before
  std::array<std::span<const KeyRow>, 4> tables;
};

// The tables, by what the models are like.
std::span<const ArchitectureKeys> dense_architectures();
std::span<const ArchitectureKeys> expert_architectures();
std::span<const ArchitectureKeys> encoder_architectures();

const ArchitectureKeys* find_architecture_keys(std::string_view architecture);  // null if there are none

void write_row(HyperModel& model, const KeyRow& row);
// Writes one key. Null is left out.
void write_key(HyperModel& model, std::string_view key, KeyKind kind, const Json* value);

}  // namespace ballast::llamacpp
