// Mixture: llama-quantize's mixtures of types. Some tensors deserve more bits than most, and the first and last blocks
// more than those between.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include <ballast/dtype.hpp>
#include <ballast/shape.hpp>

#include "llamacpp/recipe/file_types.hpp"
#include "llamacpp/recipe/model_facts.hpp"
#include "llamacpp/recipe/tensor_roles.hpp"

namespace ballast::llamacpp {

class Mixture {
 public:
  // `value_tensors` is how many tensors of the whole model have the role of attention values.
  Mixture(const FileType& file_type, const ModelFacts& facts, bool has_importance, std::uint64_t value_tensors)
      : file_type_(file_type), facts_(facts), has_importance_(has_importance), value_tensors_(value_tensors) {}

  // The type of the next tensor: tensors are counted, so they must come in the order in which they are written.
  DType next(std::string_view name, const Shape& shape, Role role);

 private:
  // Where a tensor stands among those of its role.
  struct Place {
    std::uint64_t index, count;
  };
  Place take_place(std::string_view name, Role role);
  std::uint32_t conditions(const Shape& shape, Role role, Place place) const;

  const FileType& file_type_;
  const ModelFacts& facts_;
  bool has_importance_;
  std::uint64_t value_tensors_;
  std::array<std::uint64_t, kRoleCount> seen_{};
};

}  // namespace ballast::llamacpp
