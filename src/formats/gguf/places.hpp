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
  std::uint64_t end = 0;      // of the last one, aligned
  std::vector<std::string> oddities;
};

// Every tensor has bytes of its own, all of them among the `data_bytes` that the file has. What ggml asks for beyond
// that (no holes, the order of the header) is an oddity where it is not so. Leniently, bytes may be shared, as far as
// the limits let views repeat bytes.
Places place_tensors(const Header& header, std::uint64_t data_bytes, const ReadOptions& options);

}  // namespace ballast::gguf
