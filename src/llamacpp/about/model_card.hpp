// The data at the top of a model's README.md: license, languages, what it was made from.
#pragma once

#include <string_view>
#include <vector>

#include <ballast/checkpoint.hpp>
#include <ballast/json.hpp>

#include "llamacpp/model_folder.hpp"

namespace ballast::llamacpp {

// The YAML between the first line, "---", and the next one, as an object. Empty if the text does not begin so, or if
// the YAML is not a mapping. Throws as parse_yaml() does.
Json parse_model_card(std::string_view text);

// The folder's card. One that cannot be read is a note, and as if it were not there.
Json read_model_card(const ModelFolder& folder, std::vector<Note>& notes);

}  // namespace ballast::llamacpp
