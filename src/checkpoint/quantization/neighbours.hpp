// What lies beside a quantized weight and changes what its layer computes, or how its parts are to be read.
#pragma once

#include <ballast/checkpoint.hpp>

#include "checkpoint/quantization/find_packed.hpp"
#include "checkpoint/quantization/weights/module.hpp"

namespace ballast {

class Neighbours {
 public:
  explicit Neighbours(const Checkpoint& checkpoint);  // the checkpoint must outlive this object

  // Throws Errc::unsupported if the weight alone does not say what its layer computes, or if ComfyUI's word for its
  // form is not one that a reader knows.
  void check(const PackedModule& module, const PackedWeight& weight) const;

 private:
  void check_comfy(const PackedModule& module, const PackedWeight& weight, const Tensor& said) const;

  const Checkpoint& checkpoint_;
  bool has_factors_ = false, has_corrections_ = false, has_comfy_ = false;
};

}  // namespace ballast
