// What the files beside a checkpoint say about its quantization.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <ballast/checkpoint.hpp>
#include <ballast/open_options.hpp>

namespace ballast {

struct QuantizationConfig {
  std::string scheme;  // empty if a configuration is there and does not name it
  std::string file;    // the name of the file that says so
  std::optional<std::uint64_t> bits;
  std::optional<std::int64_t> group_size;
};

// Looks in the folder that `target` is or lies in. Nothing if no file there says anything; a file that is not JSON says
// nothing.
std::optional<QuantizationConfig> find_quantization_config(const std::string& target, const OpenOptions& options);

}  // namespace ballast
