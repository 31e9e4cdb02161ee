// Names that differ only in numbers as one pattern: "layers.10.mlp.weight" is one of "layers.#.mlp.weight".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ballast {

// Reuses the memory of `pattern`.
void assign_pattern(std::string& pattern, std::string_view name);

// The first number between the dots of a name; nothing if there is none, or if it has more than 18 digits.
std::optional<std::uint64_t> layer_number(std::string_view name);

}  // namespace ballast
