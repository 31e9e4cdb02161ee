// What `info` says of one target, as JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <ballast/checkpoint.hpp>
#include <ballast/model_info.hpp>
#include <ballast/summary.hpp>
#include <ballast/training.hpp>

#include "../json_writer.hpp"
#include "../terminal.hpp"

namespace ballast::cli {

// What people compute by hand.
struct Estimates {
  std::optional<double> bits_per_weight;
  std::uint64_t weights_bytes = 0;
  std::uint64_t context = 0;  // tokens
  std::optional<std::uint64_t> kv_cache_bytes;
};

// "32 items of string"
std::string array_text(const Terminal& screen, const MetadataEntry& field);

// All that is said of a checkpoint beside what it says itself.
struct InfoFacts {
  const Summary& summary;
  const ModelInfo& model;
  const Estimates& estimates;
  const TrainingParts& training;
};

// The members of one object.
void write_info(JsonWriter& json, const Checkpoint& checkpoint, const InfoFacts& facts);

}  // namespace ballast::cli
