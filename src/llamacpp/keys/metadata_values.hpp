// JSON values as the values of GGUF keys, typed as gguf-py types Python's.
#pragma once

#include <string>
#include <string_view>

#include <ballast/json.hpp>
#include <ballast/typed_metadata.hpp>

namespace ballast::llamacpp {

// These throw Errc::malformed with the key if the value does not fit.
MetadataEntry u32_entry(std::string_view key, const Json& value);
MetadataEntry i32_entry(std::string_view key, const Json& value);
MetadataEntry f32_entry(std::string_view key, const Json& value);
// Integers become i32, doubles f32, booleans bool, texts strings; all items must be of one kind.
MetadataEntry list_entry(std::string_view key, const Json& value);

}  // namespace ballast::llamacpp
