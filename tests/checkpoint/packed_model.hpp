// PackedModel: a file with a weight that is kept in parts, and the configuration beside it.
#pragma once

#include <string>
#include <vector>

#include <ballast/ballast.hpp>

#include "builders/safetensors_file.hpp"

namespace ballast::test {

struct PackedModel {
  explicit PackedModel(const SafetensorsFile& file, const std::string& config = "") {
    file.write(folder, "model.safetensors");
    if (!config.empty()) folder.write("config.json", config);
  }
  Checkpoint packed() const { return open(folder.path()); }
  Checkpoint opened(OpenOptions options = {}) const {
    options.dequantize = true;
    return open(folder.path(), options);
  }
  std::vector<float> values(const std::string& name) const { return opened().at(name).values<float>(); }

  TempDir folder;
};

}  // namespace ballast::test
