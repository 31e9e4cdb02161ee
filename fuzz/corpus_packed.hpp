// The inputs that fuzzing compressed tensors begins with.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tensor/packed_frames.hpp"
#include "tensor/packed_storage.hpp"

namespace ballast::fuzz {

// The head of an input of packed_fuzz: which of its three ways, the dtype, and the expected number of bytes.
inline std::string packed_head(int way, DType dtype, std::size_t bytes) {
  return {static_cast<char>(way), static_cast<char>(dtype), static_cast<char>(bytes), static_cast<char>(bytes >> 8),
          static_cast<char>(bytes >> 16)};
}

inline std::string packed_text(DType dtype, const std::string& plain) {
  const std::uint64_t count = plain.size() / info(dtype).block_bytes * info(dtype).block_elements;
  const Tensor tensor = Tensor::from_bytes(dtype, Shape{count}, std::as_bytes(std::span(plain)));
  std::vector<std::uint32_t> sizes;
  for (std::uint64_t i = 0; i < chunk_count(plain.size()); ++i) sizes.push_back(measure_frame(tensor, i));
  const auto packed = packed_storage(tensor, std::move(sizes), "w");
  std::string text(packed->size_bytes(), '\0');
  packed->read(0, std::as_writable_bytes(std::span(text)));
  return text;
}

inline std::vector<std::string> packed_tensors() {
  std::vector<std::string> inputs = {"", packed_head(0, DType::u8, 0), packed_head(1, DType::u8, 0)};
  for (const DType dtype : {DType::u8, DType::bf16, DType::f32, DType::f64, DType::c128, DType::f4, DType::f6_e2m3}) {
    // Every size is a multiple of 48, so that it is a whole number of elements of each type.
    for (const std::size_t size : {std::size_t{0}, std::size_t{48}, std::size_t{4800}, kChunkBytes + 32}) {
      std::string plain(size, '\0');
      for (std::size_t i = 0; i < std::min<std::size_t>(size, 5000); ++i) plain[i] = static_cast<char>(i * i % 23 % 7);
      const std::string packed = packed_text(dtype, plain);
      inputs.push_back(packed_head(0, dtype, size) + packed);
      inputs.push_back(packed_head(0, dtype, size + 48) + packed);
      inputs.push_back(packed_head(0, dtype, size) + packed.substr(0, packed.size() / 2));
      inputs.push_back(packed_head(1, dtype, 0) + plain.substr(0, 6000));
    }
  }
  const std::string packed = packed_text(DType::bf16, std::string(4800, 'x'));
  for (std::size_t i = 0; i < packed.size(); ++i) {
    std::string broken = packed_head(0, DType::bf16, 4800) + packed;
    broken[broken.size() - 1 - i] ^= 0x11;
    inputs.push_back(broken);
  }
  for (const char* metadata :
       {"", "{}", R"({"version":1,"tensors":{}})", R"({"version":2,"tensors":{}})",
        R"({"version":1,"tensors":{"w":{"dtype":"BF16","shape":[2,3]}}})",
        R"({"version":1,"tensors":{"w":{"dtype":"F4","shape":[3]}}})",
        R"({"version":1,"tensors":{"w":{"dtype":"U8","shape":[]},"v":{"dtype":"U8","shape":[]}}})",
        R"({"version":1,"tensors":{"w":{"dtype":"U8","shape":[1]},"w":{"dtype":"U8","shape":[2]}}})",
        R"({"version":1,"tensors":{"w":{"dtype":"U8","shape":[10485760]}}})",
        R"({"version":1,"tensors":{"w":{"dtype":"U8","shape":[18446744073709551615]}}})"})
    inputs.push_back(packed_head(2, DType::u8, 0) + metadata);
  return inputs;
}

}  // namespace ballast::fuzz
