// Whether the tensors of a checkpoint of Hugging Face are those that its config.json promises, where a table knows the
// architecture.
#pragma once

#include <string>
#include <vector>

#include <ballast/checkpoint.hpp>
#include <ballast/open_options.hpp>

namespace ballast::llamacpp {

struct ModelFault {
  enum class Kind { missing, contradiction, left_over, unreadable };
  Kind kind;
  std::string tensor;  // empty if it is not about one
  std::string what;
};

// Nothing is found in a model whose architecture is not known. Configurations that cannot be read are `unreadable`.
std::vector<ModelFault> find_model_faults(const Checkpoint& checkpoint, const OpenOptions& options);

}  // namespace ballast::llamacpp
