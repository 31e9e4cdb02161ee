// Walks a tensor's bytes from the first to the last: in place if they are mapped, else through a buffer.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include <ballast/tensor.hpp>

#include "core/progress_meter.hpp"

namespace ballast {

// Calls `look` with whole elements (or blocks), in order; if `unit` is not 0, with a multiple of `unit` bytes, except
// at the end. See Storage::visit for what `look` may do. `meter` may be null.
void for_each_chunk(const Tensor& tensor, std::uint64_t first, std::uint64_t size,
                    const std::function<void(std::span<const std::byte>)>& look, ProgressMeter* meter = nullptr,
                    std::uint64_t unit = 0);

// A part of a tensor that is worth a thread.
struct TensorPart {
  std::size_t number;  // the number of the tensor
  std::uint64_t first, size;
};

// Cuts tensors by bytes, so that one huge tensor does not leave a core idle. Sequential storages stay whole.
std::vector<TensorPart> split_tensors(std::span<const Tensor* const> tensors);

}  // namespace ballast
