// A weight with adapters merged into it, computed as it is read.
#pragma once

#include <vector>

#include <ballast/tensor.hpp>

#include "ops/merge/edit.hpp"

namespace ballast::merging {

// All edits have the same extent, of as many elements as the base. With `round_between`, the result of each is rounded
// to the base's dtype before the next one begins. Throws Errc::unsupported where values of that dtype cannot be made.
Tensor merged_tensor(const Tensor& base, std::vector<EditPtr> edits, bool round_between);

}  // namespace ballast::merging
