// What a GGUF says about a model as a whole: its name, who made it, from what, under which license.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <ballast/checkpoint.hpp>
#include <ballast/typed_metadata.hpp>

#include "llamacpp/config/model_config.hpp"
#include "llamacpp/model_folder.hpp"

namespace ballast::llamacpp {

struct ParameterCounts {
  std::uint64_t total = 0;
  std::uint64_t shared = 0;        // in tensors that are not experts'
  std::uint64_t expert = 0;        // of one expert, in all blocks
  std::uint64_t expert_count = 0;  // 0 if there are none
};

// A tensor of the GGUF: its name there, and its shape with the rows first.
struct CountedTensor {
  std::string_view name;
  std::span<const std::uint64_t> shape;
};
ParameterCounts count_parameters(std::span<const CountedTensor> tensors);

// Adds general.*, up to where the keys of the architecture begin, and among them what add_early_keys() adds. What
// cannot be read, and values of a kind that no key has, are notes.
void add_general(const ModelFolder& folder, const ModelConfig& config, const ParameterCounts& counts,
                 TypedMetadata& out, std::vector<Note>& notes);

}  // namespace ballast::llamacpp
