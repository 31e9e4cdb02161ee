// Which weights of a model are quantized: the linear layers that transformers would quantize, or those that were named.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <ballast/checkpoint.hpp>
#include <ballast/quantize.hpp>

namespace ballast {

enum class Choice : std::uint8_t {
  not_a_weight,    // a vector, an integer, a stack of matrices, something empty
  left,            // a matrix that is not chosen
  left_uneven,     // a matrix whose rows are not whole blocks
  left_as_conv1d,  // a matrix of GPT-2, which is transposed
  stack,           // the experts of a layer in one tensor, for a scheme that is loaded matrix by matrix
  quantized,
};

class WeightChooser {
 public:
  WeightChooser(const Checkpoint& checkpoint, const QuantizeOptions& options);

  Choice operator()(std::string_view name, const Tensor& tensor) const;

  // Whether the model is gpt-oss, whose experts have a form of MXFP4 that is their own. Nothing else of it is quantized
  // in that form.
  bool is_gpt_oss() const noexcept { return is_gpt_oss_; }

 private:
  bool is_wanted(std::string_view name) const;

  const QuantizeOptions& options_;
  bool is_gpt_oss_ = false, has_conv1d_ = false;
};

// The name of the module that has the parameter: "layers.0.mlp" of "layers.0.mlp.weight".
std::string_view module_of_parameter(std::string_view name) noexcept;

}  // namespace ballast
