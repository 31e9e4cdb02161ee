// Tensors as a conversion cache stores them, and back: every dtype, every name, equal bytes once.
#pragma once

#include <ballast/state_dict.hpp>

#include "cache/record.hpp"

namespace ballast {

struct StoredTensors {
  StateDict tensors;                     // which safetensors can store, all of them
  std::vector<RecordedTensor> recorded;  // every tensor, in order; names lie in `tensors` and in what was given
};

// What safetensors has no dtype for is stored as integers of the same width. Names of the same bytes are stored once,
// and tensors without data not at all.
StoredTensors to_stored(const StateDict& tensors);

// The inverse. Names lie in what `names` keeps alive. Throws Errc::malformed where the two do not fit.
StateDict from_stored(const StateDict& stored, const std::vector<RecordedTensor>& recorded,
                      std::shared_ptr<const void> names);

}  // namespace ballast
