// Which weights of a checkpoint are tensors of torchao's classes, and the tensors that these keep their data in.
#pragma once

#include <string>
#include <vector>

#include <ballast/checkpoint.hpp>

namespace ballast {

struct TorchaoWrapper {
  std::string weight;
  std::string type;  // "torchao.quantization.Int8Tensor"; metadata say no module: "torchao.Int8Tensor"
  std::vector<std::string> parts;
};

// A pickle has the classes themselves, and a safetensors file tells them in its metadata.
std::vector<TorchaoWrapper> torchao_wrappers(const Checkpoint& checkpoint);

}  // namespace ballast
