// merge: puts what one or several PEFT adapters have learned into the weights of a base checkpoint.
//
// Lazy: every changed tensor is computed when it is read, a few rows at a time, in F32, and rounded once to the dtype
// of the base, which does not change unless it is asked for (ggml's blocks are decoded and encoded again). The matrices
// of the adapter are read by prepare(), or by the first read, and kept in memory; a SavePlan counts that memory.
//
// The functions may be called from several threads at once, and several threads may read merged tensors. These share
// the storages of the base and of the adapters and keep them alive.
//
// Example:
//   const Checkpoint base = open("model.safetensors");
//   save(merge(base, {load_adapter("lora", for_base(base))}), "merged.safetensors");
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <ballast/adapter.hpp>
#include <ballast/checkpoint.hpp>
#include <ballast/dtype.hpp>

namespace ballast {

struct MergeOptions {
  // A factor for the change of each adapter; if there are none, 1 for each. A change that is not a sum (IA3, OFT, ...)
  // goes this fraction of the way from the old weight to the new one.
  std::vector<double> weights{};
  // Rounds wherever PEFT's merge_and_unload() rounds on a CPU, and repeats its mistakes: the second addition to
  // out_proj of nn.MultiheadAttention, and in each copy of a replicated layer the sum of what all copies learned.
  bool peft_exact = false;
  // Takes adapters out of a base that they were merged into. Errc::unsupported for methods that do not keep what this
  // needs (DoRA, replaced tensors).
  bool unmerge = false;
  // Casts the result, as cast() does. A changed weight is then rounded once, to this dtype; with peft_exact it is
  // rounded to the dtype of the base first, as PEFT's is.
  std::optional<DType> dtype{};
  NameOptions names{};  // for a GGUF base: what the file does not say
};

// Adapters are applied in order. A tensor of an adapter that belongs to no tensor of the base is Errc::not_found, with
// the nearest name; a tensor whose shape does not fit is Errc::mismatch; a kind of adapter that cannot be merged is
// Errc::unsupported, with the reason; and an adapter that check_adapter() refuses is refused. Only modules_to_save may
// add tensors that the base does not have, with a note.
//
// Adapters use the names of Hugging Face. A GGUF base with llama.cpp's names gets these names while it is merged, and
// has its own names in the result. for_base() gives load_adapter() what a file of another dialect needs to know about
// the base.
Checkpoint merge(Checkpoint base, const std::vector<Adapter>& adapters, const MergeOptions& options = {});

// The bytes of the adapter's matrices, which a tensor that merge() made keeps in memory while it is read, besides a few
// rows. SavePlan::memory_bytes counts them already.
std::uint64_t merge_memory_bytes(const Tensor& tensor);

// A row of the table of merge rules. The table is constant.
struct MergeRule {
  std::string_view peft_type;   // "LORA"
  std::string_view prefix;      // of the parameters of this type: "lora_"
  std::string_view parameters;  // the parameters that are merged, separated by spaces; empty if there is no rule
  std::string_view formula;     // on one line
  std::string_view why_not;     // a sentence for a type that is not merged; empty for the others
};
std::span<const MergeRule> merge_rules() noexcept;

}  // namespace ballast
