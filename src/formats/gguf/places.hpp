// Where the tensors of a header lie in the data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <ballast/dtype.hpp>

#include "formats/gguf/header.hpp"
#include "formats/gguf/reader.hpp"

namespace ballast::gguf {

struct Place {
  std::uint64_t offset = 0, size = 0;  // from the data's beginning
  std::optional<DType> dtype;          // nothing for a type that is newer than our table
};

struct Places {
  std::vector<Place> places;  // by tensor
  std::uint64_t end = 0;      // of the last tensor, aligned
  std::vector<std::string> oddities;
};

// Checks that every tensor has bytes of its own, all of them among the `data_bytes` that the file has. If a file breaks
// the further rules of ggml (no holes, the order of the header), that is an oddity. A lenient reading lets tensors
// share bytes, as far as the limits let views repeat bytes.
Places place_tensors(const Header& header, std::uint64_t data_bytes, const ReadOptions& options);

}  // namespace ballast::gguf
