// The shards that an index names, for targets that are an index.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <ballast/source.hpp>

namespace ballast::fetching {

bool is_index(std::string_view name);  // "model.safetensors.index.json", "model.safetensors.index.fp16.json"

// Names in the folder of the index; a name that leads out of it is Errc::unsafe.
std::vector<std::string> files_of_index(const Source& index);

}  // namespace ballast::fetching
