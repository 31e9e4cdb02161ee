// The weights of a checkpoint that are kept in parts, found by the names and dtypes of the parts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <ballast/checkpoint.hpp>

#include "checkpoint/quantization/scheme_table.hpp"
#include "core/name_hash.hpp"

namespace ballast {

struct PackedWeight {
  std::string base;  // what the names of its parts begin with
  const PackingScheme* row;
  std::string_view scheme;  // the row's, or what shapes and further tensors tell
};

class PackedWeights {
 public:
  explicit PackedWeights(const Checkpoint& checkpoint);  // the checkpoint must outlive this object

  // In the order of their first parts.
  const std::vector<PackedWeight>& all() const noexcept { return all_; }

  // Whether a tensor is a part of one of them, or quantizes the activations of such a module.
  bool has_part(std::string_view name) const;
  bool has_of_activations(std::string_view name) const;

  // Whether a tensor that is no part of these holds codes all the same, so that its other parts must be missing.
  bool is_orphan(std::string_view name, const Tensor& tensor) const;

 private:
  void look_at(std::string_view name, const Tensor& tensor);
  const Tensor* find(std::string_view base, std::string_view ending);
  std::string_view refined(const PackingScheme& row, std::string_view base, const Tensor& tensor,
                           const Tensor& partner);
  void add(const PackingScheme& row, std::string_view base, std::string_view scheme);

  const Checkpoint& checkpoint_;
  std::vector<PackedWeight> all_;
  NameMap<PackingScheme::Of> bases_;  // of all
  NameMap<bool> modules_;             // those that packed parameters are in
  NameMap<bool> around_modules_;      // what these modules are in
  bool has_modules_ = false;  // whether a base is a module
  std::string name_;
};

// The name without its last component; empty if there is just one.
std::string_view module_of(std::string_view name) noexcept;

}  // namespace ballast
