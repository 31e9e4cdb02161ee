// Finds the prefix that the names of one checkpoint have, and those of another lack.
#pragma once

#include <string>

#include <ballast/checkpoint.hpp>

namespace ballast {

// How many names both have.
std::size_t count_shared(const Checkpoint& a, const Checkpoint& b);

// The prefix, with its dot, with which the names of `longer` begin and behind which the names of `shorter` stand; at
// least nine of ten names of the smaller checkpoint do. Empty if there is none, if another prefix would find more than
// a tenth as many names, or if a tenth of the names are the same already.
std::string find_prefix(const Checkpoint& longer, const Checkpoint& shorter);

// `shorter` with the prefix before every name that `longer` has so, and `longer` without it where `shorter` has the
// rest. Errc::invalid_argument if two tensors would get one name.
Checkpoint with_prefix_of(Checkpoint shorter, const Checkpoint& longer, const std::string& prefix);
Checkpoint without_prefix(Checkpoint longer, const Checkpoint& shorter, const std::string& prefix);

}  // namespace ballast
