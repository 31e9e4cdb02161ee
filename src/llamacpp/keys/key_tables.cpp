#include <algorithm>

#include "llamacpp/keys/key_rows.hpp"

namespace ballast::llamacpp {

const ArchitectureKeys* find_architecture_keys(std::string_view architecture) {
  for (const auto& table : {dense_architectures(), expert_architectures(), encoder_architectures()}) {
    const auto row = std::ranges::find(table, architecture, &ArchitectureKeys::architecture);
    if (row != table.end()) return &*row;
  }
  return nullptr;
}

}  // namespace ballast::llamacpp
