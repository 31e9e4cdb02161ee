// Tensors in the memory of a device.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include <ballast/device.hpp>
#include <ballast/tensor.hpp>

namespace ballast {

// Contiguous copies on an opencl or cuda device, read in the order given: while the device copies one piece, the next
// is read. Several threads do so with two buffers each, at most 64 MiB in all. `on_read` is told of every piece.
std::vector<Tensor> uploaded(std::span<const Tensor> tensors, const Device& device, unsigned threads,
                             const std::function<void(std::uint64_t bytes)>& on_read = {});

// The dtype and the shape, and no data.
Tensor without_data(const Tensor& tensor);

}  // namespace ballast
