// DoRA: a direction and a magnitude. W' = m (W + D) / |W + D|, with D as in LoRA and a norm for each output.
#pragma once

#include "ops/merge/low_rank.hpp"

namespace ballast::merging {

// `low_rank` in the order of the weight. Outputs are rows, or columns where the weight is transposed: then their norms
// take a pass over the whole weight, which is prepare().
EditPtr dora_edit(const Task& task, const Tensor& weight, const Tensor& magnitudes, bool transposed, LowRank low_rank);

}  // namespace ballast::merging
