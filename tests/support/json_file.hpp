// Expectations come as JSON.
#pragma once

#include <simdjson.h>

#include <filesystem>

namespace ballast::test {

// The parser owns the values: it must outlive them.
inline simdjson::dom::element parse_json_file(simdjson::dom::parser& parser, const std::filesystem::path& path) {
  return parser.load(path.string());
}

}  // namespace ballast::test
