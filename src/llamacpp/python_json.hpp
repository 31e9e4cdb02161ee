// JSON as Python writes it: integers of any size ("model_max_length": 1000000000000000019884624838656 stands in most
// tokenizer_config.json), NaN and Infinity.
#pragma once

#include <string_view>

#include <ballast/json.hpp>

namespace ballast::llamacpp {

// An integer of more than 64 bits becomes a double; NaN and Infinity are doubles, too. Throws as Json::parse().
Json parse_python_json(std::string_view text);

}  // namespace ballast::llamacpp
