// Merging adapters: a base checkpoint with what one or several PEFT adapters learned put into its weights.
//
// Lazy: every changed tensor is computed when it is read, a few rows at a time, in F32, and rounded once to the dtype
// of the base, which stays what it was (blocks of ggml are decoded and encoded again). Merged tensors may be read from
// several threads; the matrices of the adapter are read by prepare(), or by the first read, and kept in memory.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <ballast/adapter.hpp>
#include <ballast/checkpoint.hpp>

namespace ballast {

struct MergeOptions {
  // One an adapter, by which its change is multiplied; none means 1 for each. What is no sum (IA3, OFT, ...) goes so
  // far of the way from the old weight to the new one.
  std::vector<double> weights{};
  // Rounds wherever PEFT's merge_and_unload() rounds on a CPU, and does what it does wrong: the second addition to
  // out_proj of nn.MultiheadAttention, the sum of all copies in each copy of a replicated layer.
  bool peft_exact = false;
  // Takes adapters out of a base that they were merged into. Not possible for methods that do not keep what is needed
  // for it (DoRA, replaced tensors): Errc::unsupported.
  bool unmerge = false;
};

// Adapters are applied in order. A tensor of an adapter that belongs to no tensor of the base is Errc::not_found, with
// the nearest name; one whose shape does not fit is Errc::mismatch; a kind of adapter that cannot be merged is
// Errc::unsupported and says why. Only modules_to_save may add tensors that the base does not have, with a note.
Checkpoint merge(Checkpoint base, const std::vector<Adapter>& adapters, const MergeOptions& options = {});

// What a tensor that merge() made keeps in memory while it is read, besides a few rows. 0 for any other tensor.
std::uint64_t merge_memory_bytes(const Tensor& tensor);

// One row of the table that merge() goes by.
struct MergeRule {
  std::string_view peft_type;   // "LORA"
  std::string_view prefix;      // of its parameters: "lora_"
  std::string_view parameters;  // those it merges, separated by spaces; empty where there is no rule
  std::string_view formula;     // in a line
  std::string_view why_not;     // a sentence for a type that is not merged; empty for the others
  std::string_view vectors;     // the reference cases that test it, separated by spaces
};
std::span<const MergeRule> merge_rules() noexcept;

}  // namespace ballast
