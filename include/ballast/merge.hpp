// Merging adapters: a base checkpoint with what one or several PEFT adapters learned put into its weights.
//
// Lazy: every changed tensor is computed when it is read, a few rows at a time, in F32, and rounded once to the dtype
// of the base, which stays what it was (blocks of ggml are decoded and encoded again). Merged tensors may be read from
// several threads; the matrices of the adapter are read by prepare(), or by the first read, and kept in memory. A plan
// of saving counts that memory.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <ballast/adapter.hpp>
#include <ballast/checkpoint.hpp>

namespace ballast {

struct MergeOptions {
  // A number for each adapter, by which its change is multiplied; if there are none, 1 for each. A change that is not a
  // sum (IA3, OFT, ...) goes so far of the way from the old weight to the new one.
  std::vector<double> weights{};
  // Rounds wherever PEFT's merge_and_unload() rounds on a CPU, and repeats its mistakes: the second addition to
  // out_proj of nn.MultiheadAttention, and in each copy of a replicated layer the sum of what all copies learned.
  bool peft_exact = false;
  // Takes adapters out of a base that they were merged into. Errc::unsupported for methods that do not keep what this
  // needs (DoRA, replaced tensors).
  bool unmerge = false;
  NameOptions names{};  // for a GGUF base: what the file does not say
};

// Adapters are applied in order. A tensor of an adapter that belongs to no tensor of the base is Errc::not_found, with
// the nearest name; one whose shape does not fit is Errc::mismatch; a kind of adapter that cannot be merged is
// Errc::unsupported and says why; and whatever check_adapter() refuses is refused. Only modules_to_save may add tensors
// that the base does not have, with a note.
//
// Adapters know the names of Hugging Face. A GGUF base with llama.cpp's names has those while it is merged, and its own
// in the result. for_base() gives load_adapter() what a file of another dialect needs to know of the base.
Checkpoint merge(Checkpoint base, const std::vector<Adapter>& adapters, const MergeOptions& options = {});

// The bytes that a tensor which merge() made keeps in memory while it is read, besides a few rows: the adapter's
// matrices. A plan of saving has counted them already, in SavePlan::memory_bytes.
std::uint64_t merge_memory_bytes(const Tensor& tensor);

// A row of the table that merge() goes by.
struct MergeRule {
  std::string_view peft_type;   // "LORA"
  std::string_view prefix;      // of its parameters: "lora_"
  std::string_view parameters;  // that are merged, separated by spaces; empty if there is no rule
  std::string_view formula;     // in a line
  std::string_view why_not;     // a sentence for a type that is not merged; empty for the others
};
std::span<const MergeRule> merge_rules() noexcept;

}  // namespace ballast
