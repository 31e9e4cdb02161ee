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

// From this size on, what is copied in pieces is written around the cache. Left to itself, memcpy would decide that for
// each piece, from a size on that depends on the processor (24 MiB, 99 MiB): with pieces of 4 MiB every line was first
// fetched and then overwritten, at 0.62 of the speed of one memcpy of all.
constexpr std::uint64_t kWorthStreaming = std::uint64_t{64} << 20;

// Bytes of the contiguous form of `tensor` into `out`, as Tensor::read() does it. `streams`: around the cache, if the
// bytes lie in memory as they are.
void read_piece(const Tensor& tensor, std::uint64_t first, std::span<std::byte> out, bool streams);

}  // namespace ballast
