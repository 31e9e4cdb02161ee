// The order of a model's modules, where files do not keep it.
#pragma once

#include <string>
#include <vector>

#include "ops/merge/module.hpp"

namespace ballast::merging {

// The modules' numbers, in the order in which their model defines them: layers by their numbers, the modules of
// transformers as all of them are ordered. Errc::unsupported where two are not known.
std::vector<std::size_t> model_order(const std::vector<Module>& modules);

}  // namespace ballast::merging
