// The layout of a safetensors file: the bytes of the header, and where each tensor goes.
//
// Byte for byte what the reference library writes for the same tensors, with the metadata sorted.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <ballast/checkpoint.hpp>
#include <ballast/limits.hpp>

namespace ballast::safetensors {

struct Layout {
  struct Item {
    std::string_view name;
    const Tensor* tensor;
    std::uint64_t offset;  // in the file
  };
  std::vector<std::byte> head;
  std::vector<Item> items;  // in the order of the file
  std::uint64_t size_bytes = 0;
};

// The entries must outlive the layout. Throws Errc::unsupported for a dtype that safetensors cannot store,
// Errc::limit for a header that no reader would accept.
Layout lay_out(std::vector<const StateDict::Entry*> entries, const Metadata& metadata, const Limits& limits = {});

}  // namespace ballast::safetensors
