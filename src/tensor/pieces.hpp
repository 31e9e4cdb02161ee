// Tensors cut by bytes, so that threads share both large and small ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <ballast/tensor.hpp>

#include "core/thread_pool.hpp"

namespace ballast {

constexpr std::uint64_t kPieceBytes = std::uint64_t{4} << 20;  // enough to keep a disk busy

// A piece of a tensor that one thread reads without a pause.
struct TensorPiece {
  std::size_t tensor;  // the number of the tensor
  ByteRange bytes;     // of its contiguous form
};

// Pieces of about `target_bytes` each, of whole elements and of whole granules of the storage; a tensor that can only
// be read from front to back is one piece. An empty tensor has no pieces.
std::vector<ByteRange> cut_by_bytes(const Tensor& tensor, std::uint64_t target_bytes);
std::vector<TensorPiece> cut_by_bytes(std::span<const Tensor> tensors, std::uint64_t target_bytes);

// From this size on, tensors that are copied in pieces are written around the cache. memcpy itself would decide that
// for each piece, from a size that depends on the processor (24 MiB, 99 MiB): with pieces of 4 MiB, every cache line
// was first fetched and then overwritten, at 0.62 of the speed of one memcpy of all.
constexpr std::uint64_t kWorthStreaming = std::uint64_t{64} << 20;

// Reads bytes of the contiguous form of `tensor` into `out`, as Tensor::read() does. `streams`: writes around the
// cache, if the bytes lie in memory as they are.
void read_piece(const Tensor& tensor, std::uint64_t first, std::span<std::byte> out, bool streams);

}  // namespace ballast
