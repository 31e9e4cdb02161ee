// Needs: which tensors of a checkpoint a model takes, found by loading the checkpoint without its bytes. So whatever
// load_bound() can do with names, maps, dtypes and prefixes is done by load_bound(), and checked before anything is
// read.
#pragma once

#include <cstddef>
#include <vector>

#include <ballast/load_state_dict.hpp>

#include "schedule.hpp"

namespace ballast::mpi {

// A field of the model with memory of its own that gets the bytes of a tensor as they are.
struct DirectField {
  std::size_t field = 0;   // the number of the bound tensor
  std::size_t tensor = 0;  // the number of the tensor in the sliced checkpoint
};

struct FieldNeeds {
  std::vector<Need> tensors;  // by the tensors of the sliced checkpoint
  std::vector<DirectField> direct;
};

// Throws what load_bound() would throw: the StateDictError of a strict load, an Error about something dangerous. The
// model stays as it is. `sliced` has this rank's parts of the tensors of `whole`.
FieldNeeds find_needs(const std::vector<BoundTensor>& model, const Checkpoint& whole, const Checkpoint& sliced,
                      const LoadStateDictOptions& options);

// The sliced checkpoint with other tensors of the same names, in the same order. The parts of quantized weights stay
// known as such.
Checkpoint with_tensors(const Checkpoint& whole, const Checkpoint& sliced, std::vector<Tensor> tensors);

// The tensor with other bytes: contiguous, from the beginning of the storage.
Tensor with_storage(const Tensor& tensor, StoragePtr storage);

}  // namespace ballast::mpi
