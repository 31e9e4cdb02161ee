// Walking a tensor's bytes from the first to the last: in place where they are mapped, else through a buffer.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include <ballast/tensor.hpp>

#include "core/progress_meter.hpp"

namespace ballast {

// `look` is called with whole elements (or blocks), in order, or with a multiple of `unit` bytes where that is not 0,
// but for the last; see Storage::visit for what it may do. `meter` may be null.
void for_each_chunk(const Tensor& tensor, std::uint64_t first, std::uint64_t size,
                    const std::function<void(std::span<const std::byte>)>& look, ProgressMeter* meter = nullptr,
                    std::uint64_t unit = 0);

// A part of a tensor that is worth a thread.
struct TensorPart {
  std::size_t number;  // of the tensor
  std::uint64_t first, size;
};

// Cuts tensors by bytes, so that one huge one does not leave a core idle. Sequential storages stay whole.
std::vector<TensorPart> split_tensors(std::span<const Tensor* const> tensors);

}  // namespace ballast
