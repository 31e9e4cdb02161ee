// Metadata that an adapter has beside its tensors, and that the file that is made of it does not have.
#pragma once

#include <vector>

#include <ballast/adapter.hpp>

namespace ballast::peft {

// A note of the metadata that `written` lacks, such as the record of training that kohya's programs keep ("ss_…").
std::vector<Note> left_out_metadata(const Adapter& adapter, const Checkpoint& written);

}  // namespace ballast::peft
