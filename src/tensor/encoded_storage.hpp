// Values that are encoded into ggml's blocks as they are read.
#pragma once

#include <memory>
#include <vector>

#include <ballast/tensor.hpp>

namespace ballast {

// Throws Errc::unsupported for a type that cannot be encoded or needs importance, and for a tensor whose rows are not
// whole blocks.
Tensor encoded(const Tensor& tensor, DType type);

// `importance` has a weight for each element of a row, or, if the tensor is a stack of matrices (three dimensions), for
// each element of a row of each matrix. It may be null. Throws Errc::mismatch if it has another size, too.
Tensor encoded(const Tensor& tensor, DType type, std::shared_ptr<const std::vector<float>> importance);

}  // namespace ballast
