// Whether the tensors of a model are those that its config.json promises, or the metadata of a GGUF, where a table
// knows the architecture.
#pragma once

#include <string>
#include <vector>

#include <ballast/checkpoint.hpp>
#include <ballast/open_options.hpp>

namespace ballast::llamacpp {

struct ModelFault {
  enum class Kind { missing, contradiction, left_over, unreadable, not_compared };
  Kind kind;
  std::string tensor;  // empty if it is not about one
  std::string what;
};

// A model whose architecture is not known is `not_compared`, and so is a shard alone. Configurations that cannot be
// read are `unreadable`. Two matrices that should be one are read; else no tensor is.
std::vector<ModelFault> find_model_faults(const Checkpoint& checkpoint, const OpenOptions& options);

}  // namespace ballast::llamacpp
