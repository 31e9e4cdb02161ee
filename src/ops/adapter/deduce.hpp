// The configuration of an adapter that has none, as far as its tensors tell.
#pragma once

#include <ballast/adapter.hpp>

namespace ballast::adapter {

// Fills in config, with notes of what is only likely.
void deduce_config(Adapter& adapter);

}  // namespace ballast::adapter
