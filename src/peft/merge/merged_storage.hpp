// A weight with adapters merged into it, computed as it is read.
#pragma once

#include <vector>

#include <ballast/tensor.hpp>

#include "peft/merge/edit.hpp"

namespace ballast::peft {

// All edits have the same extent, of as many elements as the base. With `round_between`, the result of each is rounded
// to the base's dtype before the next one begins. Throws Errc::unsupported if values of that dtype cannot be made.
Tensor merged_tensor(const Tensor& base, std::vector<EditPtr> edits, bool round_between);

}  // namespace ballast::peft
