// What the tensors of an adapter tell: the modules that it changes, and, if it has no configuration, what that would
// say.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <ballast/adapter.hpp>

#include "peft/types.hpp"

namespace ballast::peft {

// All types that the adapter may be of. There are several only for tensors without a configuration: many methods save a
// prompt and nothing else.
std::vector<const PeftType*> types_of(const Adapter& adapter);

// Modules, named as in the base.
struct AdapterModules {
  std::set<std::string> adapted;
  std::set<std::string> whole;  // that the file replaces
};
AdapterModules modules_of(const Adapter& adapter, const PeftType& type);

// The matrices of a LoRA at each module, named as in the base.
struct LoraPair {
  const Tensor *a = nullptr, *b = nullptr;
};
std::map<std::string, LoraPair, std::less<>> lora_pairs(const Adapter& adapter, const PeftType& type);

// Fills in the configuration, with a note of what is only likely.
void deduce_config(Adapter& adapter);

}  // namespace ballast::peft
