// A string as JSON writes it.
#pragma once

#include <string>
#include <string_view>

namespace ballast {

// Appends the text in quotes, with JSON's short escapes, \u00xx for other control characters, and all else (UTF-8)
// unchanged. serde_json, and so the reference library of safetensors, writes strings in this way.
void append_json_string(std::string& out, std::string_view text);

}  // namespace ballast
