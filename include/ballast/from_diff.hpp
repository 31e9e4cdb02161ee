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
  std::uint64_t rank = 16;      // of every matrix; less where a dimension is smaller
  bool fan_in_fan_out = false;  // the matrices are [in, out], as GPT-2's are
  Selection selection{};        // over the base's names
  NameOptions names{};          // of GGUF: what the files do not say
  unsigned threads = 0;
  Progress progress{};
};

struct FromDiffReport {
  struct Layer {
    std::string name;  // of the weight
    Shape shape;
    std::uint64_t rank = 0;
    double change = 0;  // |tuned - base| / |base|, the roots of the sums of squares
    double error = 0;   // what is left of the change: 0 is none of it, 1 is all
  };
  std::vector<Layer> layers;         // that changed, in the order of the base
  std::vector<std::string> left;     // changed as well, and no LoRA can hold it: biases, norms
  std::vector<std::string> missing;  // in one of the checkpoints only, or of another shape there
  std::uint64_t unchanged = 0;       // tensors
};

struct FromDiff {
  Adapter adapter;  // in memory, F32; scaling 1
  FromDiffReport report;
};

// Of a GGUF with the names of llama.cpp, the names and values of Hugging Face are compared, which adapters know;
// Errc::unsupported where its architecture has none. What has no such name is left.
//
// The best approximation of that rank to each difference, by its singular values. A difference is in memory while it
// is worked on, one a thread. Errc::mismatch where no matrix has changed.
FromDiff lora_from_diff(const Checkpoint& base, const Checkpoint& tuned, const FromDiffOptions& options = {});

}  // namespace ballast
