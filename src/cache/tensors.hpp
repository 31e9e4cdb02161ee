// Tensors as a conversion cache stores them, and back: any dtype and any name; equal bytes are stored once.
#pragma once

#include <ballast/state_dict.hpp>

#include "cache/record.hpp"

namespace ballast {

struct StoredTensors {
  StateDict tensors;                     // only tensors that safetensors can store
  std::vector<RecordedTensor> recorded;  // every tensor, in order; names lie in `tensors` and in what was given
};

// A tensor whose dtype safetensors does not have is stored as integers of the same width. If several names have the
// same bytes, these are stored once; tensors without data are not stored.
StoredTensors to_stored(const StateDict& tensors);

// The inverse. `names` keeps the memory of the names alive. Throws Errc::malformed if the two do not fit.
StateDict from_stored(const StateDict& stored, const std::vector<RecordedTensor>& recorded,
                      std::shared_ptr<const void> names);

}  // namespace ballast
