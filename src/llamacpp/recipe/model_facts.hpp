// ModelFacts: what the choice of types depends on besides the tensors themselves.
#pragma once

#include <cstdint>
#include <string>

#include <ballast/typed_metadata.hpp>

namespace ballast::llamacpp {

struct ModelFacts {
  std::string architecture{};  // general.architecture
  std::uint64_t blocks = 0;    // all of them, also those that predict further tokens
  std::uint64_t heads = 0;     // of the first block
  std::uint64_t kv_heads = 0;  // of the first block
  std::uint64_t experts = 0;

  std::uint64_t heads_per_kv_head() const noexcept { return kv_heads == 0 ? 0 : heads / kv_heads; }

  // What llama.cpp calls a 70B model, whatever its size is.
  bool is_70b() const noexcept;
};

// As the metadata of a GGUF say it. What they do not say is 0.
ModelFacts model_facts(const TypedMetadata& metadata);

}  // namespace ballast::llamacpp
