// Provenance: where a tensor's values come from, and what is done to them on the way.
//
// provenance() reads no data and may be called from several threads at once. The result owns everything in it.
#pragma once

#include <string>
#include <vector>

#include <ballast/tensor.hpp>

namespace ballast {

struct Provenance {
  std::vector<Storage::Location> from;  // the first byte of each source that lies in a file; the tensor's own first
  std::vector<std::string> steps;       // in the order in which they are done: "inflate", "gather", "cast to BF16"
};

Provenance provenance(const Tensor& tensor);

}  // namespace ballast
