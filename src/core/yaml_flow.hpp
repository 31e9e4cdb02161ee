// Lists and mappings in brackets, on one line or on several.
#pragma once

#include <cstddef>

#include <ballast/json.hpp>

#include "core/yaml_cursor.hpp"

namespace ballast {

// Reads the collection that begins at `column`, and leaves `column` behind its closing bracket.
Json read_yaml_flow(YamlCursor& in, std::size_t& column, std::size_t depth);

}  // namespace ballast
