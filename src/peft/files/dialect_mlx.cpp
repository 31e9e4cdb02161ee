// MLX: "model.layers.0.self_attn.q_proj.lora_a", [in, rank], and ".lora_b", [rank, out], which PEFT has the other way
// round. The factor itself stands in adapter_config.json, {"lora_parameters": {"scale": 20.0}}.
#include <ballast/error.hpp>

#include "core/text.hpp"
#include "peft/files/dialects.hpp"
#include "peft/names.hpp"

namespace ballast::peft {

LoraModules read_mlx(const StateDict& tensors, const AdapterConfig& config) {
  const Json* parameters = config.find("lora_parameters");
  const Json* scale = parameters == nullptr ? nullptr : parameters->find("scale");
  LoraModules modules;
  for (const auto& [name, tensor] : tensors) {
    const bool is_a = name.ends_with(".lora_a"), is_b = name.ends_with(".lora_b");
    if ((!is_a && !is_b) || tensor.rank() != 2)
      throw Error(Errc::unsupported, "tensor " + quote(name) + " is not a matrix of a LoRA of MLX");
    LoraModule& module = modules[std::string(module_of(name))];
    (is_a ? module.a : module.b) = tensor.transpose();
    if (scale != nullptr) module.scaling = scale->number();
  }
  return modules;
}

}  // namespace ballast::peft
