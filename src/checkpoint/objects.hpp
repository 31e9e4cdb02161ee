// The whole object that a PyTorch file or a pickle holds. open() gives its tensors by name.
#pragma once

#include <ballast/open_options.hpp>
#include <ballast/source.hpp>

#include "formats/torch/objects.hpp"

namespace ballast {

// No graph if the source is of another format.
torch::Objects read_objects(const SourcePtr& source, const OpenOptions& options);

}  // namespace ballast
