// assign: metadata set from what somebody typed.
//
// Plain functions: several threads may call them for different metadata.
//
// Example:
//   TypedMetadata metadata;
//   assign(metadata, "llama.block_count:u32=2");
//   assign(metadata, "general.tags:[string]=chat,tiny");
//   assign(metadata, R"(general.languages=["en", "de"])");
#pragma once

#include <string>
#include <string_view>

#include <ballast/typed_metadata.hpp>

namespace ballast {

// KEY=VALUE sets one value, as TypedMetadata::set_from_text() does; KEY:TYPE=VALUE one of this type (str is string).
// KEY:[TYPE]=VALUE sets an array of such values: a JSON array, or texts or numbers with commas between them.
//
// A value that is a JSON array sets an array without a type, too, if the key is new or has an array already. An array
// that was there keeps the type of its elements; those of a new one are strings, bools, or of the first of u32, i32,
// u64, i64, f32 and f64 that all of them can be. Throws Errc::invalid_argument, naming the key, for anything else, and
// for an empty array of no type. Returns the key.
std::string assign(TypedMetadata& fields, std::string_view assignment);

// The same for metadata that are texts, as safetensors has them. KEY:string=VALUE is a text, too; any other type is
// Errc::invalid_argument.
struct TextAssignment {
  std::string key, text;
};
TextAssignment parse_text_assignment(std::string_view assignment);

}  // namespace ballast
