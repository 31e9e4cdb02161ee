// What the files beside a checkpoint say of its quantization.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <ballast/checkpoint.hpp>
#include <ballast/open_options.hpp>

namespace ballast {

struct QuantizationConfig {
  std::string scheme;  // empty where a configuration is there and does not name it
  std::string file;    // that says so, by its name
  std::optional<std::uint64_t> bits;
  std::optional<std::int64_t> group_size;
};

// Of the folder that `target` is or lies in. Nothing where no file there says anything; a file that is no JSON says
// nothing.
std::optional<QuantizationConfig> find_quantization_config(const std::string& target, const OpenOptions& options);

}  // namespace ballast
