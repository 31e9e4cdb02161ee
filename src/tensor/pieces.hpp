// Tensors cut by bytes, so that threads share large ones and small ones alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <ballast/tensor.hpp>

#include "core/thread_pool.hpp"

namespace ballast {

constexpr std::uint64_t kPieceBytes = std::uint64_t{4} << 20;  // enough to keep a disk busy

// What one thread reads without a pause.
struct TensorPiece {
  std::size_t tensor;  // its number
  ByteRange bytes;     // of its contiguous form
};

// About `target_bytes` each, on whole elements and on the granules of the storage; what can only be read from front to
// back is one piece. None of what is empty.
std::vector<ByteRange> cut_by_bytes(const Tensor& tensor, std::uint64_t target_bytes);
std::vector<TensorPiece> cut_by_bytes(std::span<const Tensor> tensors, std::uint64_t target_bytes);

}  // namespace ballast
