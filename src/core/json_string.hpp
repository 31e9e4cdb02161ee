// A string as JSON writes it.
#pragma once

#include <string>
#include <string_view>

namespace ballast {

// In quotes: short escapes where JSON has them, \u00xx for other control characters, the rest (UTF-8) as it is.
// This is how serde_json, and so the reference library of safetensors, writes strings.
void append_json_string(std::string& out, std::string_view text);

}  // namespace ballast
