// What the files beside a checkpoint say about its quantization.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

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
  std::vector<Note> unread;   // of files that cannot be read
};

// Looks in the folder that `target` is or lies in.
QuantizationConfig find_quantization_config(const std::string& target, const OpenOptions& options);

// Throws Errc::malformed if a note of `unread` is among those of the checkpoint: what the parts of its weights stand
// for may depend on that file.
void refuse_unread_configuration(const Checkpoint& checkpoint);

}  // namespace ballast
