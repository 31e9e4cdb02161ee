// The weights of a checkpoint that are kept in parts, found by the names and dtypes of the parts.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ballast/checkpoint.hpp>

#include "checkpoint/quantization/scheme_table.hpp"
#include "core/name_hash.hpp"

namespace ballast {

struct PackedWeight {
  std::size_t number;     // of the first tensor that told it
  std::string_view base;  // what the names of its parts begin with
  const PackingScheme* row;
  std::string_view scheme;  // the row's, or what shapes and further tensors tell

  std::string name() const;  // of the weight
};

// Tensors are asked for by their numbers in the checkpoint, since there are many.
class PackedWeights {
 public:
  explicit PackedWeights(const Checkpoint& checkpoint);  // the checkpoint must outlive this object

  // In the order of their first parts.
  const std::vector<PackedWeight>& all() const noexcept { return all_; }

  // Whether a tensor is a part of one of them, or quantizes the activations of such a module.
  bool has_part(std::size_t number) const noexcept { return is_part_[number]; }
  bool has_of_activations(std::size_t number) const noexcept { return is_of_activations_[number]; }

  // Which of them such a part belongs to.
  std::optional<std::size_t> weight_of(std::size_t number) const;
  bool has_base(std::string_view base) const { return bases_.contains(base); }

  // The name of a weight that is not among them, if a tensor holds its codes, or what goes with codes, all the same:
  // its other parts must be missing. Else empty. Only for checkpoints that are known to be quantized.
  std::string orphan_of(std::size_t number) const;

 private:
  void look_at(std::size_t number);
  bool has(std::string_view base, std::string_view ending);
  std::string_view refined(const PackingScheme& row, std::string_view base, const Tensor& tensor,
                           const Tensor& partner);
  std::optional<std::size_t> weight_with(std::string_view name) const;  // a part of that name
  bool is_module(std::size_t weight) const { return all_[weight].row->of == PackingScheme::Of::module; }
  void find_activations(const std::vector<std::size_t>& likely);  // by their names

  const Checkpoint& checkpoint_;
  std::vector<PackedWeight> all_;
  NameViewMap<std::size_t> bases_;  // of all, with their places in it
  bool has_modules_ = false;        // whether a base is a module
  std::vector<bool> is_part_, is_of_activations_;
  std::string name_;
};

// The name without its last component; empty if there is just one.
std::string_view module_of(std::string_view name) noexcept;

}  // namespace ballast
