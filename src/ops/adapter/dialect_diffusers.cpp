// diffusers: PEFT's tensors without its prefix, "unet.down_blocks.0.….to_q.lora_A.weight", and in older releases
// ".lora.down.weight". Nothing beside them says the scaling, which is 1 unless there is a configuration in the
// metadata: so that every reader gets it right, it is folded into B.
#include <ballast/error.hpp>

#include "core/text.hpp"
#include "ops/adapter/computed.hpp"
#include "ops/adapter/dialects.hpp"

namespace ballast::adapter {

LoraModules read_diffusers(const StateDict& tensors) {
  LoraModules modules;
  for (const auto& [name, tensor] : tensors) {
    if (add_tensor(modules, name, tensor)) continue;
    throw Error(Errc::unsupported, "tensor " + quote(name) + " is no part of a LoRA")
        .hint("an adapter that replaces whole tensors is no LoRA of diffusers");
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

}  // namespace ballast::adapter
