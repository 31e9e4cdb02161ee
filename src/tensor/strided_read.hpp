// Reading a strided view as if it were contiguous.
#pragma once

#include <cstdint>
#include <span>

#include <ballast/tensor.hpp>

namespace ballast {

// Bytes [first, first + out.size()) of the view's contiguous form; the range lies inside it.
void strided_read(const Tensor& view, std::uint64_t first, std::span<std::byte> out);

}  // namespace ballast
