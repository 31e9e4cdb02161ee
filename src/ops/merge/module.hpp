// What a rule works with: a module as an adapter tells of it, the base, and the edits that come of both.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <ballast/checkpoint.hpp>
#include <ballast/merge.hpp>

#include "checkpoint/packed_parts.hpp"
#include "ops/merge/edit.hpp"
#include "ops/merge/settings.hpp"

namespace ballast::merging {

using Tensors = std::map<std::string, Tensor, std::less<>>;

// All tensors of one adapter that belong to one module of the base.
struct Module {
  std::string name;         // as the base calls it: "model.layers.0.self_attn.q_proj"
  Tensors parts;            // by the names of its parameters: "lora_A.weight"
  std::uint64_t depth = 0;  // how many wrappers are around: PEFT wraps a module once for each parameter it targets
  bool is_inside_wrapper = false;  // the adapter wraps a module that it lies in as well

  const Tensor* find(std::string_view part) const;
  const Tensor& at(std::string_view part) const;  // throws Errc::mismatch
};

// An adapter taken apart by its names.
struct Parts {
  std::vector<Module> modules;  // in the order of the file
  Tensors shared;               // what belongs to no module: "vera_A"
  Tensors tokens;               // trainable_tokens_delta, by module
  Tensors replaced;             // whole tensors, by the name in the base
};

// The tensors of the base, and what is to become of them. Names of one tensor stay names of one tensor: what happens to
// one of them happens to all, unless `apart` says that they are copies.
class Base {
 public:
  Base(Checkpoint& checkpoint, bool apart);

  const Checkpoint& checkpoint() const { return checkpoint_; }
  const Tensor* find(std::string_view name) const { return checkpoint_.find(name); }
  const Tensor& at(std::string_view name) const;  // throws Errc::not_found, with the nearest name

  void edit(std::string_view name, EditPtr edit);
  void replace(std::string_view name, Tensor tensor);  // added where it is not there
  void finish(bool round_between);

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
  static std::string_view module_of(const Table& table) {
    return std::string_view(table.name).substr(0, table.name.rfind('.'));
  }
  bool is_changed(const Table& table) const;
  void note_copies() const;

  Checkpoint& checkpoint_;
  PackedParts packed_;
  std::vector<Change> changes_;                              // one a tensor
  std::vector<Table> tables_;                                // embeddings, and what has their shape
  std::map<std::string, std::size_t, std::less<>> numbers_;  // of those, by name
};

// One rule's work: one module of one adapter.
struct Task {
  const Module& module;
  const Parts& parts;
  const Settings& settings;
  const MergeOptions& options;
  double weight;  // of the adapter; negative where it is taken out again
  Base& base;

  std::string weight_name() const { return module.name + ".weight"; }
  std::string bias_name() const { return module.name + ".bias"; }

  // For what is added. With peft_exact, rounded to `dtypes` in turn.
  Addition addition(std::vector<DType> dtypes) const;

  // For what is no sum: gone `weight` of the way, or refused where it cannot be taken out again and should be.
  void edit(std::string_view name, EditPtr edit) const;
  void refuse_unmerge(std::string_view why) const;

  const Tensor& shared(std::string_view name) const;  // throws Errc::mismatch
};

// Throws Errc::mismatch, naming both, where a parameter has another shape than the rule needs.
void require_shape(const Module& module, std::string_view part, std::initializer_list<std::uint64_t> shape);

// Whether the module's weight is kept [in, out], for parameters made for [out, in]. The configuration decides where
// both would fit, as in PEFT, which knows the class of the module. Errc::mismatch where neither fits.
bool is_transposed(const Task& task, const Tensor& weight, std::uint64_t out, std::uint64_t in);

Parts take_apart(const Adapter& adapter, std::string_view parameters, std::string_view shared);

}  // namespace ballast::merging
