// Training checkpoints: which tensors are the model, and which are what an optimizer or an average keeps beside it.
//
// Everything is decided by names and plain values; no tensor data is read. The functions may be called from several
// threads at once. The tensors of model_only() share the storages of those that it is given and keep them alive, and
// tensors that share their bytes still do.
//
// Example:
//   const Checkpoint checkpoint = open("last.ckpt");
//   if (is_training_checkpoint(checkpoint)) save(model_only(checkpoint), "model.safetensors");
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ballast/checkpoint.hpp>

namespace ballast {

// A part of a training checkpoint. Bytes that several tensors share are counted once.
struct TrainingPart {
  std::string root;  // the subtree that it is: "optimizer"; empty for the top
  std::uint64_t tensors = 0;
  std::uint64_t bytes = 0;
};

struct TrainingParts {
  TrainingPart model;                    // without tensors if there is no model
  bool is_average = false;               // the model is an average, since no other weights are there
  std::string prefix{};                  // what wrappers put before every name of the model: "module."
  std::vector<TrainingPart> optimizers;  // what optimizers keep
  std::vector<TrainingPart> averages;    // averages of the model: "ema"
  std::vector<TrainingPart> others;      // whatever else is not the model
  std::vector<std::string> tied{};       // names of the model that share the bytes of an earlier name

  // Whether an optimizer or an average is there. If neither is, the model is the likeliest state dict, or all of it.
  bool is_training() const noexcept { return !optimizers.empty() || !averages.empty(); }
};

// Whether training_parts() finds an optimizer or an average. Cheap for a checkpoint that has no such names.
bool is_training_checkpoint(const Checkpoint& checkpoint);

// What is what, by the names that training programs give to it: PyTorch's own examples, Lightning, DeepSpeed, Megatron,
// fairseq, timm, detectron2, YOLO and others.
TrainingParts training_parts(const Checkpoint& checkpoint);

// Just the model, under the names that it has itself: without the subtree that it lies in, and without what wrappers
// (DistributedDataParallel, torch.compile, FSDP) put into its names. "model." is taken away only if Lightning put it
// there, and never from the names of Hugging Face ("model.layers.0…"). Plain values stay, but for those of what is left
// out. Notes say what is left out; a note says so if nothing is. Errc::not_found if there is no model.
Checkpoint model_only(Checkpoint checkpoint);

}  // namespace ballast
