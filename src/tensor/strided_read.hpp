// Reading a strided view as if it were contiguous, and giving back what was read.
#pragma once

#include <cstdint>
#include <span>

#include <ballast/tensor.hpp>

namespace ballast {

// Bytes [first, first + out.size()) of the view's contiguous form; the range lies inside it.
void strided_read(const Tensor& view, std::uint64_t first, std::span<std::byte> out);

// Storage::release() for a range of the view's contiguous form, if the rows of the outermost dimension lie one after
// the other, whatever the order inside a row (the heads of a permuted weight). Does nothing for other views.
void strided_release(const Tensor& view, ByteRange range);

}  // namespace ballast
