// The refusal of a value that a type of blocks or codes cannot hold.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <ballast/tensor.hpp>

namespace ballast {

// "the value at [2, 7] is NaN, which cannot be encoded as Q4_K", in the file that the values come from. `index` counts
// the elements of the tensor's contiguous form.
[[noreturn]] void refuse_not_finite(const Tensor& tensor, std::uint64_t index, float value, std::string_view type,
                                    std::string hint);

}  // namespace ballast
