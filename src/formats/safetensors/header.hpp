// The header of a safetensors file, read in one pass.
//
//   u64   n                  the header's length, little-endian
//   n     a JSON object      {"__metadata__": {string: string}, NAME: {"dtype", "shape", "data_offsets"}, ...}
//   rest  the data           offsets count from here; tensors fill it without holes or overlaps
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <ballast/checkpoint.hpp>
#include <ballast/limits.hpp>
#include <ballast/storage.hpp>

#include "core/padded_text.hpp"

namespace ballast::safetensors {

inline constexpr std::uint64_t kLengthBytes = 8;

struct TextRange {
  std::size_t begin = 0, end = 0;
};

struct Header {
  StateDict tensors;  // by offset
  Metadata metadata;
  TextRange metadata_text;  // from the key to the end of its value; empty if there is none
  bool leading_space = false;
  std::uint64_t data_end = 0;  // where the last tensor ends, from the data's beginning
};

// Every rule but the last (that the tensors reach to the end of the file) is checked here. Errors name the tensor
// and the byte of the file. `data` is what follows the header.
Header parse_header(std::shared_ptr<const PaddedText> text, StoragePtr data, const Limits& limits);

}  // namespace ballast::safetensors
