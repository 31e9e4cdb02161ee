#include "tensor/pieces.hpp"

namespace ballast {

std::vector<TensorPiece> cut_by_bytes(std::span<const Tensor> tensors, std::uint64_t target_bytes) {
  std::vector<TensorPiece> pieces;
  pieces.reserve(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::uint64_t size = tensors[i].nbytes();
    if (size == 0) continue;
    const Storage& storage = *tensors[i].storage();
    if (size <= target_bytes || storage.is_sequential()) {
      pieces.push_back({i, {0, size}});
      continue;
    }
    const std::uint64_t granule = tensors[i].is_contiguous() ? storage.granule() : 1;
    for (const ByteRange& range : split_by_bytes(size, granule, target_bytes)) pieces.push_back({i, range});
  }
  return pieces;
}

}  // namespace ballast
