// The decision of a recipe: from names and shapes to types. No tensor is needed for it.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include <ballast/recipe.hpp>
#include <ballast/shape.hpp>

#include "llamacpp/recipe/file_types.hpp"
#include "llamacpp/recipe/model_facts.hpp"

namespace ballast::llamacpp {

struct PlainTensor {
  std::string_view name;
  Shape shape;
  DType type;  // the one that it has, and keeps if the recipe leaves it alone
};

struct Choice {
  DType type;
  DType wanted;                          // another one if rows are not whole blocks of it
  bool is_quantized = true;              // whether llama-quantize changes such a tensor at all
  const TensorTypeRule* rule = nullptr;  // the rule of the user's that the type comes from
};

// As llama-quantize does it. The tensors come in the order in which they are written.
std::vector<Choice> choose_types(std::span<const PlainTensor> tensors, const ModelFacts& facts,
                                 const FileType& file_type, const RecipeOptions& options);

// As the converter does it, for F32, F16, BF16 and Q8_0.
Choice converter_type(const PlainTensor& tensor, DType wanted, std::string_view architecture);

// Whether llama-quantize refuses to make such a tensor without knowing what matters.
bool needs_importance(std::string_view name, DType type, const FileType& file_type) noexcept;

// Whether the encoder of a type makes use of it.
bool uses_importance(DType type) noexcept;

}  // namespace ballast::llamacpp
