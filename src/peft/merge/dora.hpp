// DoRA: a direction and a magnitude. W' = m (W + D) / |W + D|, with D as in LoRA and a norm for each output.
#pragma once

#include "peft/merge/low_rank.hpp"

namespace ballast::peft {

// `low_rank` has the order of the weight. Outputs are rows, or columns if the weight is transposed: then prepare()
// reads the whole weight once for their norms.
EditPtr dora_edit(const Task& task, const Tensor& weight, const Tensor& magnitudes, bool transposed, LowRank low_rank);

}  // namespace ballast::peft
