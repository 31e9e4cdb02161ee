// One subtree of a nested checkpoint as a checkpoint of its own.
#pragma once

#include <string>

#include <ballast/checkpoint.hpp>

namespace ballast {

// What lies below `root`, without that prefix. Throws Errc::not_found where nothing does.
Checkpoint take_root(Checkpoint checkpoint, const std::string& root);

// The likeliest state dict first.
void sort_roots(Checkpoint& checkpoint);

}  // namespace ballast
