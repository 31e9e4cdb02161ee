// diffusers has PEFT's tensors without PEFT's prefix, "unet.down_blocks.0.….to_q.lora_A.weight", and in older releases
// ".lora.down.weight". The scaling is 1 unless the metadata has a configuration. So that every reader gets it right,
// the scaling is multiplied into B.
#include <ballast/error.hpp>

#include "core/text.hpp"
#include "peft/computed.hpp"
#include "peft/files/dialects.hpp"

namespace ballast::peft {

LoraModules read_diffusers(const StateDict& tensors) {
  LoraModules modules;
  for (const auto& [name, tensor] : tensors) {
    if (add_tensor(modules, name, tensor)) continue;
    throw Error(Errc::unsupported, "tensor " + quote(name) + " is not a part of a LoRA")
        .hint("a LoRA of diffusers does not replace whole tensors");
  }
  return modules;
}

StateDict write_diffusers(const LoraModules& modules) {
  StateDict tensors;
  for (const auto& [name, module] : modules) {
    tensors.insert(name + ".lora_A.weight", *module.a);
    tensors.insert(name + ".lora_B.weight", scaled(*module.b, *module.scaling));
    if (module.bias) tensors.insert(name + ".lora_B.bias", scaled(*module.bias, *module.scaling));
    if (module.magnitude) tensors.insert(name + ".lora_magnitude_vector", *module.magnitude);
  }
  return tensors;
}

}  // namespace ballast::peft
