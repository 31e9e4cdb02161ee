// A config.json as transformers' AutoConfig reads it and gives it back: with the defaults and conversions of the class
// of its model_type.
#pragma once

#include <optional>
#include <string_view>

#include <ballast/json.hpp>

namespace ballast::llamacpp {

// Nothing if there is no class for the model_type, or if the class would refuse the file. A file without model_type is
// of the type that is part of the folder's name.
std::optional<Json> read_auto_config(const Json& given, std::string_view folder_name);

}  // namespace ballast::llamacpp
