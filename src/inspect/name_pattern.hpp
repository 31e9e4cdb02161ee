// Names that differ only in numbers, folded into one.
#pragma once

#include <string>
#include <string_view>

namespace ballast {

// "layers.10.mlp.weight" becomes "layers.#.mlp.weight".
void assign_pattern(std::string& pattern, std::string_view name);

}  // namespace ballast
