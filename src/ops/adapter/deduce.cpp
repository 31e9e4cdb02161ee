#include "ops/adapter/deduce.hpp"

#include <ballast/error.hpp>

namespace ballast::adapter {

void deduce_config(Adapter& adapter) {
  for (const auto& [name, tensor] : adapter.tensors) {
    if (!name.ends_with(".lora_A.weight") || tensor.rank() < 2) continue;
    const std::uint64_t rank = tensor.shape()[0];
    adapter.config.fields.set("peft_type", "LORA");
    adapter.config.fields.set("r", rank);
    adapter.config.fields.set("lora_alpha", rank);
    adapter.notes.push_back({adapter.source, "there is no adapter_config.json: lora_alpha is taken to be the rank"});
    return;
  }
  throw Error(Errc::not_found, "no adapter_config.json, and tensors that do not tell what kind of adapter they are")
      .in(adapter.source)
      .hint("put the adapter_config.json beside the weights");
}

}  // namespace ballast::adapter
