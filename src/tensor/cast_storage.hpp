// A tensor's values in another dtype, cast as they are read.
#pragma once

#include <ballast/tensor.hpp>

namespace ballast {

// kernels::can_cast(source.dtype(), to) must hold.
StoragePtr cast_storage(Tensor source, DType to);

}  // namespace ballast
