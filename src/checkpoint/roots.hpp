// One subtree of a nested checkpoint as a checkpoint of its own.
#pragma once

#include <string>

#include <ballast/checkpoint.hpp>

namespace ballast {

// The tensors below `root`, without that prefix. Throws Errc::not_found if there are none.
Checkpoint take_root(Checkpoint checkpoint, const std::string& root);

// Puts the likeliest state dict first.
void sort_roots(Checkpoint& checkpoint);

}  // namespace ballast
