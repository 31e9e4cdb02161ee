// How much a LoRA changes each module: the size of s·B·A beside that of W, and how many directions it really uses.
//
// adapter_changes() reads the two thin matrices of each module, and multiplies nothing large: what it computes comes
// from matrices of rank by rank. With a base, each adapted weight is read once. It may be called from several threads
// at once. The result owns everything in it.
//
// Example:
//   for (const AdapterChange& change : adapter_changes(load_adapter("lora"))) std::cout << change.module << "\n";
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <ballast/adapter.hpp>
#include <ballast/checkpoint.hpp>
#include <ballast/progress.hpp>

namespace ballast {

struct AdapterChange {
  std::string module;  // as the base calls it: "model.layers.0.self_attn.q_proj"
  double rank = 0, alpha = 0, scaling = 0;
  double norm = 0;                    // the root of the sum of squares of s·B·A
  std::optional<double> base_norm{};  // the same of W, if the base has it in the same number of values
  // e to the entropy of the shares that the squares of the singular values of B·A have: r if all are equal, 1 if one
  // holds everything, 0 if the change is zero.
  double effective_rank = 0;

  std::optional<double> share() const;  // norm / base_norm, if that is a number
};

// Modules with both matrices of a LoRA, in natural order; none for other types. Matrices with values that are not
// finite give NaN. `base` may be null.
std::vector<AdapterChange> adapter_changes(const Adapter& adapter, const Checkpoint* base = nullptr,
                                           const Progress& progress = {}, unsigned threads = 0);

}  // namespace ballast
