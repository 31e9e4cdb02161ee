// LoRAs as others than PEFT save them, read into PEFT's form and written back.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include <ballast/adapter.hpp>

namespace ballast::peft {

class KeyMapping;

// Told by the names of the tensors.
AdapterDialect dialect_of(const Checkpoint& file);

// `adapter` has the tensors, the metadata and, if there is one, the configuration, as the file has them. The names of
// its modules are mapped when they are known, so that the configuration says the same names.
void read_dialect(Adapter& adapter, const Checkpoint& file, const AdapterLoadOptions& options, KeyMapping& mapping);

// Throws Errc::unsupported for an adapter that the dialect has no place for.
Checkpoint write_dialect(const Adapter& adapter, AdapterDialect dialect, const NameOptions& names);

// A LoRA at one module, whatever its tensors are called.
struct LoraModule {
  std::optional<Tensor> a, b, bias, magnitude;
  std::optional<double> alpha;    // if the file says the scaling so; without either, it is 1
  std::optional<double> scaling;  // if the file says it so
  bool is_embedding = false;      // A is [rank, words], as PEFT has it
};
using LoraModules = std::map<std::string, LoraModule, std::less<>>;  // by the names of modules

// Puts modules into `adapter`, whose configuration gets r, lora_alpha and the patterns that say the same.
void put_modules(Adapter& adapter, const LoraModules& modules);

// Takes modules out of `adapter`: `scaling` is set, `alpha` is not. Embeddings only if the dialect is GGUF.
// Errc::unsupported for anything else, with the name of the dialect that has no place for it.
LoraModules take_modules(const Adapter& adapter, AdapterDialect dialect);

// "X.lora_down.weight" is A of X, and so on, for all spellings that there are. False for any other name.
bool add_tensor(LoraModules& modules, std::string_view name, const Tensor& tensor);

// One function for each dialect and direction.
LoraModules read_kohya(const StateDict& tensors, const std::vector<std::string>& base_names);
LoraModules read_diffusers(const StateDict& tensors);
LoraModules read_mlx(const StateDict& tensors, const AdapterConfig& config);
LoraModules read_gguf(const Checkpoint& file, const NameOptions& names);
StateDict write_kohya(const LoraModules& modules);
StateDict write_diffusers(const LoraModules& modules);
Checkpoint write_gguf(const LoraModules& modules, const Adapter& adapter, const NameOptions& names);

}  // namespace ballast::peft
