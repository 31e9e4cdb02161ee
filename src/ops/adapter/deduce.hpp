// The configuration of an adapter that has none, as far as its tensors tell.
#pragma once

#include <vector>

#include <ballast/adapter.hpp>

#include "ops/adapter/types.hpp"

namespace ballast::adapter {

// Fills in config, with notes of what is only likely.
void deduce_config(Adapter& adapter);

// The types that the tensors may be of, where the configuration has none: several methods save a prompt, and nothing
// else. Empty for tensors of no type.
std::vector<const PeftType*> possible_types(const StateDict& tensors);

}  // namespace ballast::adapter
