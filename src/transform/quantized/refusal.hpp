// The refusal of weights that are not finite: no code and no scale holds such a value.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/remedy.hpp"
#include "tensor/not_finite.hpp"

namespace ballast {

// `values` begin at element `first` of the tensor, and one of them is not finite.
[[noreturn]] inline void refuse_first_not_finite(const Tensor& tensor, std::uint64_t first,
                                                 std::span<const float> values, std::string_view type) {
  std::size_t i = 0;
  while (i + 1 < values.size() && std::isfinite(values[i])) ++i;
  refuse_not_finite(tensor, first + i, values[i], type,
                    "name the weights that are to be quantized, without this one; " + mention(Remedy::stats) +
                        " finds all such values");
}

}  // namespace ballast
