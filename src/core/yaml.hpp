// YAML as people write it at the top of a model card: block mappings and sequences, flow lists, quoted and plain
// scalars over several lines, block scalars, comments. Plain scalars are typed as in YAML 1.1, as PyYAML does it: "no"
// is false. Dates stay texts.
#pragma once

#include <string_view>

#include <ballast/json.hpp>

namespace ballast {

// Reads one document. If a mapping has a key twice, the last one counts. Throws Errc::malformed with the line;
// Errc::unsupported for anchors, aliases, tags, directives and keys that are not scalars; and Errc::limit if values are
// nested deeper than 32, or if a mapping has more than 1024 keys.
Json parse_yaml(std::string_view text);

}  // namespace ballast
