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

// Gives the pages back that were looked at, a few MiB at once: each time, all processors are interrupted.
class PageReturn {
 public:
  PageReturn(const Tensor& tensor, std::uint64_t first) : tensor_(tensor), first_(first) {}

  // The bytes in front of `end` were looked at.
  void looked_at(std::uint64_t end) {
    if (end - first_ >= kAtOnce) finish(end);
  }
  void finish(std::uint64_t end) {
    if (tensor_.is_contiguous()) tensor_.release({first_, end - first_});
    first_ = end;
  }

 private:
  static constexpr std::uint64_t kAtOnce = std::uint64_t{8} << 20;

  const Tensor& tensor_;
  std::uint64_t first_;
};

// A part of a tensor that is worth a thread.
struct TensorPart {
  std::size_t number;  // the number of the tensor
  std::uint64_t first, size;
};

// Cuts tensors by bytes, so that one huge tensor does not leave a core idle. Sequential storages stay whole.
std::vector<TensorPart> split_tensors(std::span<const Tensor* const> tensors);

}  // namespace ballast
