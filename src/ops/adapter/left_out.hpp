// What an adapter says beside its tensors, and what is written of it will not say.
#pragma once

#include <string_view>
#include <vector>

#include <ballast/adapter.hpp>

namespace ballast::adapter {

// Metadata that `written` does not have, such as the record of a training that kohya's programs keep ("ss_…").
std::vector<Note> left_out_metadata(const Adapter& adapter, const Checkpoint& written);

}  // namespace ballast::adapter
