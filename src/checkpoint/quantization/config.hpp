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
  std::string file;    // the name of the file that says so; empty if none does
  std::optional<std::uint64_t> bits;
  std::optional<std::int64_t> group_size;
  Json config;                // what that file says of quantization, or null
  Json model;                 // the config.json, or null
  DType dtype = DType::bf16;  // of the model, as config.json says; if it does not, BF16
};

// Looks in the folder that `target` is or lies in. A file that is not JSON says nothing.
QuantizationConfig find_quantization_config(const std::string& target, const OpenOptions& options);

}  // namespace ballast
