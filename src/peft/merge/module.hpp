// What a rule works with: a module as an adapter has it, the base, and the edits that come of both.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ballast/checkpoint.hpp>
#include <ballast/merge.hpp>

#include "checkpoint/quantization/packed_parts.hpp"
#include "peft/merge/edit.hpp"
#include "peft/types.hpp"

namespace ballast::peft {

using Tensors = std::map<std::string, Tensor, std::less<>>;

// All tensors of one adapter that belong to one module of the base.
struct Module {
  std::string name;                // as the base calls it: "model.layers.0.self_attn.q_proj"
  Tensors parts{};                 // by the names of its parameters: "lora_A.weight"
  bool is_inside_wrapper = false;  // the adapter wraps a module around this one, too

  const Tensor* find(std::string_view part) const;
  const Tensor& at(std::string_view part) const;  // throws Errc::mismatch
};

// An adapter taken apart by its names.
struct Parts {
  std::vector<Module> modules;  // in the order of the file
  Tensors shared;               // tensors of the whole adapter: "vera_A"
  Tensors tokens;               // trainable_tokens_delta, by module
  Tensors replaced;             // whole tensors, by the name in the base
};
Parts take_apart(const Adapter& adapter, const PeftType& type);

// The tensors of the base, and the edits of each. Several names of one tensor stay names of one tensor: an edit of one
// is an edit of all, unless `apart` says that they are copies.
class Base {
 public:
  Base(Checkpoint& checkpoint, bool apart);

  const Checkpoint& checkpoint() const { return checkpoint_; }
  const Tensor* find(std::string_view name) const { return checkpoint_.find(name); }
  const Tensor& at(std::string_view name) const;  // throws Errc::not_found, with the nearest name

  void edit(std::string_view name, EditPtr edit);
  void replace(std::string_view name, Tensor tensor);  // adds the tensor if the base does not have it
  // `dtype` is what the result is cast to afterwards, if anything.
  void finish(bool round_between, std::optional<DType> dtype);

 private:
  struct Change {
    std::vector<std::string> names;
    std::vector<EditPtr> edits;
    bool is_replaced = false;
  };
  struct Table {
    std::string name;
    Tensor before;
  };

  static std::vector<Table> tables_of(const Checkpoint& checkpoint);
  bool is_changed(const Table& table) const;
  void note_copies() const;

  Checkpoint& checkpoint_;
  PackedParts packed_;
  std::vector<Change> changes_;                              // one for each tensor
  std::vector<Table> tables_;                                // embeddings, and tensors that have their shape
  std::map<std::string, std::size_t, std::less<>> numbers_;  // of changes, by names
};

// One rule's work: one module of one adapter.
struct Task {
  const Module& module;
  const Parts& parts;
  const AdapterConfig& config;
  const MergeOptions& options;
  double factor;  // by which the adapter counts; negative if it is taken out again
  Base& base;

  std::string weight_name() const { return module.name + ".weight"; }
  std::string bias_name() const { return module.name + ".bias"; }
  const Tensor& weight() const { return base.at(weight_name()); }

  // [out, in] of the weight of any module, whichever way the base keeps it. "fan_in_fan_out" says which way.
  Extent sides(const Module& module) const;

  // alpha / r, as the configuration says for the module, or for the parameter of it that `key` names. Errc::mismatch if
  // that is 0, so that the adapter would change nothing.
  double scaling(std::string_view key, std::string_view alpha_field = "lora_alpha") const;

  // For an edit that adds. With peft_exact, what is added is rounded to `dtypes` in turn.
  Addition addition(std::vector<DType> dtypes) const;

  // Makes an edit that does not add: it goes `factor` of the way from the old weight to the new one. A rule whose edit
  // cannot be undone calls refuse_unmerge() first.
  void edit(std::string_view name, EditPtr edit) const;
  void refuse_unmerge(std::string_view why) const;

  const Tensor& shared(std::string_view name) const;  // throws Errc::mismatch
};

// Throws Errc::mismatch, with both shapes, if a parameter has another shape than the rule needs.
void require_shape(const Module& module, std::string_view part, std::initializer_list<std::uint64_t> shape);

// Whether the module's weight is kept [in, out], for parameters made for [out, in]. If both would fit, the
// configuration decides; PEFT knows the class of the module. Errc::mismatch if neither fits.
bool is_transposed(const Task& task, const Tensor& weight, std::uint64_t out, std::uint64_t in);

// Throws Errc::mismatch, for a method that turns blocks of the weight's sides which are not there.
[[noreturn]] void throw_wrong_blocks(const Task& task, std::uint64_t blocks, std::uint64_t size);

// Throws Errc::mismatch unless the weight has a row for each of `tokens` and a column for each of `values`.
void require_table(const Task& task, std::uint64_t tokens, std::uint64_t values);

}  // namespace ballast::peft
