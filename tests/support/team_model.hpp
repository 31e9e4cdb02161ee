// Checkpoints that tests of teams write.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include <ballast/ballast.hpp>

namespace ballast::test {

inline Tensor floats(std::uint64_t rows, std::uint64_t columns, unsigned seed) {
  std::vector<std::byte> bytes(rows * columns * 4);
  std::uint32_t state = seed;
  for (std::uint64_t i = 0; i < rows * columns; ++i) {
    state = state * 1664525 + 1013904223;
    const float value = static_cast<float>(static_cast<std::int32_t>(state)) / 2e9F;
    std::memcpy(&bytes[4 * i], &value, 4);
  }
  return Tensor(DType::f32, {rows, columns}, memory_storage(std::move(bytes)));
}

// Large and small tensors, one of them strided, and one with values beyond F16.
inline Checkpoint model() {
  Checkpoint checkpoint;
  checkpoint.tensors.insert("large", floats(700, 1024, 1));
  checkpoint.tensors.insert("strided", floats(512, 768, 2).transpose());
  for (unsigned i = 0; i < 40; ++i) checkpoint.tensors.insert("small." + std::to_string(i), floats(3, 256, 10 + i));
  const float huge[] = {1e5F, 1.0F, -2e6F, 3e38F};
  const auto bytes = std::as_bytes(std::span(huge));
  checkpoint.tensors.insert("huge", Tensor(DType::f32, {4}, memory_storage({bytes.begin(), bytes.end()})));
  return checkpoint;
}

}  // namespace ballast::test
