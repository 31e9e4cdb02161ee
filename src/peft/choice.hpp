// VB-LoRA's choices of vectors from its bank: the largest logits, and their softmax.
#pragma once

#include <cstdint>
#include <vector>

#include <ballast/tensor.hpp>

namespace ballast::peft {

struct Choice {
  std::vector<std::uint64_t> indices;  // the largest logit first; of equal ones the first
  std::vector<float> weights;          // whose sum is 1
};

// One for each row of logits, which may not be empty: its `count` largest.
std::vector<Choice> choices_of(const Tensor& logits, std::uint64_t count);

// One for each row of indices, as they were saved. The last weight of each row was not: all of them add up to 1.
// `weights` has a column less than `indices`. Errc::malformed if an index is not less than `vectors`.
std::vector<Choice> saved_choices(const Tensor& indices, const Tensor& weights, std::uint64_t vectors);

}  // namespace ballast::peft
