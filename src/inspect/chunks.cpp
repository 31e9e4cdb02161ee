#include "inspect/chunks.hpp"

#include <algorithm>
#include <vector>

#include "tensor/pieces.hpp"

namespace ballast {
namespace {

constexpr std::uint64_t kChunkBytes = std::uint64_t{1} << 20;
constexpr std::uint64_t kPartBytes = std::uint64_t{8} << 20;
constexpr std::uint64_t kAnnouncedBytes = std::uint64_t{32}
                                          << 20;  // at once: many requests of a source that is far away

}  // namespace

void for_each_chunk(const Tensor& tensor, std::uint64_t first, std::uint64_t size,
                    const std::function<void(std::span<const std::byte>)>& look, ProgressMeter* meter,
                    std::uint64_t unit) {
  if (size == 0) return;
  tensor.storage()->prepare({});
  if (unit == 0) unit = info(tensor.dtype()).block_bytes;
  const std::uint64_t step = std::max(kChunkBytes / unit, std::uint64_t{1}) * unit;
  const bool may_be_in_place = tensor.is_contiguous();
  std::vector<std::byte> buffer;
  std::uint64_t announced = first;
  PageReturn pages(tensor, first);
  for (const std::uint64_t end = first + size; first < end;) {
    const std::uint64_t n = std::min(step, end - first);
    if (first >= announced && end - first > n) {
      const ByteRange next{first, std::min(kAnnouncedBytes, end - first)};
      tensor.prefetch({&next, 1});
      announced = first + next.size;
    }
    const bool seen = may_be_in_place && tensor.storage()->visit(tensor.offset() + first, n, look);
    if (!seen) {
      buffer.resize(n);
      tensor.read(first, buffer);
      look(buffer);
    }
    if (meter != nullptr) meter->add(n);
    first += n;
    pages.looked_at(first);
  }
  pages.finish(first);
}

std::vector<TensorPart> split_tensors(std::span<const Tensor* const> tensors) {
  std::vector<TensorPart> parts;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    for (const ByteRange& range : cut_by_bytes(*tensors[i], kPartBytes)) parts.push_back({i, range.offset, range.size});
  }
  return parts;
}

}  // namespace ballast
