// lora_from_diff: a LoRA from two checkpoints, which holds what fine-tuning changed as far as a low rank can hold it.
//
// lora_from_diff() may be called from several threads at once. The result owns everything in it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ballast/adapter.hpp>
#include <ballast/checkpoint.hpp>
#include <ballast/progress.hpp>
#include <ballast/transform.hpp>

namespace ballast {

struct FromDiffOptions {
  std::uint64_t rank = 16;       // of every matrix; less if a dimension is smaller
  bool fan_in_fan_out = false;   // the matrices are [in, out], as GPT-2's are
  Selection selection{};         // over the base's names
  NameOptions names{};           // for a GGUF: what the file does not say
  bool allow_dangerous = false;  // accept a pickle that names something dangerous
  unsigned threads = 0;
  Progress progress{};
};

struct FromDiffReport {
  struct Layer {
    std::string name;  // of the weight
    Shape shape;
    std::uint64_t rank = 0;
    double change = 0;  // |tuned - base| / |base|, the roots of the sums of squares
    double error = 0;   // how much of the change the LoRA leaves out: 0 is none of it, 1 is all
  };
  std::vector<Layer> layers;         // the layers that changed, in the order of the base
  std::vector<std::string> left;     // tensors that changed as well, but that no LoRA can hold: biases, norms
  std::vector<std::string> missing;  // tensors that only one of the checkpoints has, or that have another shape there
  std::uint64_t unchanged = 0;       // number of tensors
};

struct FromDiff {
  Adapter adapter;  // in memory, F32; scaling 1
  FromDiffReport report;
};

// Approximates each difference of two weights as well as that rank can, by its singular values. A difference is in
// memory while it is worked on, one for each thread. Errc::mismatch if no matrix has changed.
//
// A GGUF with the names of llama.cpp is compared under the names and with the values of Hugging Face, which adapters
// use; Errc::unsupported if no such names are known for its architecture. Tensors without such a name are left out.
FromDiff lora_from_diff(const Checkpoint& base, const Checkpoint& tuned, const FromDiffOptions& options = {});

}  // namespace ballast
