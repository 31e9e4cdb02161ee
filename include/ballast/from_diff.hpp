// A LoRA from two checkpoints: what fine-tuning changed, as far as a low rank can hold it.
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
  std::vector<Layer> layers;         // that changed, in the order of the base
  std::vector<std::string> left;     // tensors that changed as well, and that no LoRA can hold: biases, norms
  std::vector<std::string> missing;  // tensors that only one of the checkpoints has, or that have another shape there
  std::uint64_t unchanged = 0;       // tensors
};

struct FromDiff {
  Adapter adapter;  // in memory, F32; scaling 1
  FromDiffReport report;
};

// The best approximation of that rank to each difference of two weights, by its singular values. A difference is in
// memory while it is worked on, one a thread. Errc::mismatch if no matrix has changed.
//
// A GGUF with the names of llama.cpp is compared under the names and with the values of Hugging Face, which adapters
// know; Errc::unsupported if its architecture has none. Tensors without such a name are left.
FromDiff lora_from_diff(const Checkpoint& base, const Checkpoint& tuned, const FromDiffOptions& options = {});

}  // namespace ballast
