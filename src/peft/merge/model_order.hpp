// The order of a model's modules, which files do not keep.
#pragma once

#include <string>
#include <vector>

#include "peft/merge/module.hpp"

namespace ballast::peft {

// The modules' numbers, in the order in which the model defines them: layers by their numbers, other modules as all
// models of transformers order them. Errc::unsupported if the order of two is not known.
std::vector<std::size_t> model_order(const std::vector<Module>& modules);

}  // namespace ballast::peft
