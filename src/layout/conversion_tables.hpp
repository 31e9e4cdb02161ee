// The conversions of transformers' as data: which model_type has which rules.
#pragma once

#include <span>
#include <string_view>

namespace ballast {

// The types, between spaces, and their maps, each of which is applied to the result of the one before it.
struct ConversionRow {
  std::string_view types;
  std::string_view maps[2];  // as docs/maps.md has them; the second may be empty
};

// A number that stands for an expert is called {expert} there.
std::span<const ConversionRow> conversion_rows();

// A map that transformers applies to every model when it loads one, but not when it saves one.
std::string_view words_of_tensorflow();

}  // namespace ballast
