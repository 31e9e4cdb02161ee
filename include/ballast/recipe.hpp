// Recipes: which tensor gets which type in a file for llama.cpp. "Q4_K_M" is not a type but such a recipe.
//
// The functions may be called from several threads at once. Nothing is read: the tensors that apply_recipe() returns
// are encoded as they are read, share the storages of those that it is given, and keep them alive.
//
// Example:
//   const Checkpoint small = apply_recipe(open("model-bf16.gguf"), {.type = "Q4_K_M"});
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ballast/checkpoint.hpp>
#include <ballast/dtype.hpp>
#include <ballast/importance.hpp>

namespace ballast {

// A type for the tensors whose names the expression (RE2) matches somewhere. The expression is taken in lower case.
struct TensorTypeRule {
  std::string pattern;
  DType type;
};
TensorTypeRule parse_tensor_type(std::string_view text);  // "REGEX=TYPE"

struct RecipeOptions {
  // A file type of llama-quantize by its name, in upper or lower case, or by its number; "COPY"; or "auto", which is
  // what llama.cpp's converter does: 16 bits for matrices, F32 for vectors.
  std::string type = "auto";
  bool pure = false;                 // the same type for all that is quantized, without exceptions
  bool leave_output_tensor = false;  // output.weight stays as it is
  bool allow_requantize = false;     // blocks may be decoded and encoded again
  std::optional<DType> output_tensor_type{};
  std::optional<DType> token_embedding_type{};
  std::vector<TensorTypeRule> tensor_types{};  // before the rules of the recipe; the first that matches counts
  std::shared_ptr<const ImportanceMatrix> importance{};
  // What "auto" means, F16 or BF16. Without it, the type of the first matrix that has one of these, or F16.
  std::optional<DType> automatic{};
};

// The names of all recipes, for help and suggestions.
std::vector<std::string_view> file_type_names();

// The name of the recipe that a GGUF says it was made by, in general.file_type: "Q4_K_M". Empty if it says none.
std::string_view file_type_of(const Checkpoint& checkpoint);

// The checkpoint, which has llama.cpp's names and metadata, with every tensor in the type that the recipe gives it, and
// with the metadata that say so: general.file_type, general.quantization_version, quantize.imatrix.*.
//
// Tensors that llama-quantize leaves alone keep the type that they have in a GGUF; those of other formats get the one
// that "auto" gives them. The order of the tensors is that of llama-quantize, by block and name. If the checkpoint is
// not a GGUF, F32, F16, BF16 and Q8_0 are made as by llama.cpp's converter instead: in the order that they have, and
// with F16 where rows are not whole blocks. Blocks that are there already (of gpt-oss) stay as they are then.
//
// Errc::unsupported if rows are not whole blocks, and llama.cpp has no other type for such a tensor.
// Errc::invalid_argument for an unknown type, an expression that is wrong, a type that needs importance and has none,
// importance for another shape or another model, options that have no effect on the type, and blocks that would be
// encoded again without allow_requantize.
Checkpoint apply_recipe(Checkpoint checkpoint, const RecipeOptions& options);

// If the matrices of a checkpoint are all F32, F16, BF16 or Q8_0 now, and it has a general.file_type, that says so.
void set_plain_file_type(Checkpoint& checkpoint);

}  // namespace ballast
