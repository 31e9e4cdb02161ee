#include "tensor/pieces.hpp"

#include <numeric>

#include "kernels/stream.hpp"

namespace ballast {

std::vector<ByteRange> cut_by_bytes(const Tensor& tensor, std::uint64_t target_bytes) {
  const std::uint64_t size = tensor.nbytes();
  if (size == 0) return {};
  const Storage& storage = *tensor.storage();
  if (size <= target_bytes || storage.is_sequential()) return {{0, size}};
  const std::uint64_t block = info(tensor.dtype()).block_bytes;
  return split_by_bytes(size, tensor.is_contiguous() ? std::lcm(storage.granule(), block) : block, target_bytes);
}

std::vector<TensorPiece> cut_by_bytes(std::span<const Tensor> tensors, std::uint64_t target_bytes) {
  std::vector<TensorPiece> pieces;
  pieces.reserve(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    for (const ByteRange& range : cut_by_bytes(tensors[i], target_bytes)) pieces.push_back({i, range});
  }
  return pieces;
}

void read_piece(const Tensor& tensor, std::uint64_t first, std::span<std::byte> out, bool streams) {
  const auto copy = [out](std::span<const std::byte> from) {
    kernels::stream_copy(out.data(), from.data(), from.size());
  };
  if (streams && tensor.is_contiguous() && tensor.storage()->visit(tensor.offset() + first, out.size(), copy))
    return kernels::finish_streaming();
  tensor.read(first, out);
}

}  // namespace ballast
