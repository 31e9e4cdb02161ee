// The quantization_config by which transformers loads what quantize() makes.
#pragma once

#include <set>
#include <string>

#include <ballast/dtype.hpp>
#include <ballast/json.hpp>
#include <ballast/quantize.hpp>

namespace ballast {

struct QuantizedModules {
  std::set<std::string, std::less<>> quantized, left;  // names of modules
  DType dtype = DType::bf16;                           // of the model
  bool is_gpt_oss = false;
};

Json quantization_config(WeightScheme scheme, const QuantizedModules& modules);

}  // namespace ballast
