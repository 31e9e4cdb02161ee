// data.pkl: a state dict as torch.save pickles it, an OrderedDict of tensors.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "formats/torch/records.hpp"

namespace ballast::torch {

std::vector<std::byte> encode_state_dict(std::span<const Leaf> leaves, const Records& records);

}  // namespace ballast::torch
