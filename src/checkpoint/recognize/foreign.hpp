// Files that Ballast does not read, recognized by their bytes: what each of them is, and what to do with it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <ballast/source.hpp>

namespace ballast {

inline constexpr std::size_t kLookBytes = 512;  // enough to recognize a format: a tar has its magic at byte 257

// The part of a file that is enough to recognize it.
struct FileLook {
  std::string_view first;  // its first bytes, at most kLookBytes
  const Source& source;
};

struct ForeignFormat {
  std::string what;  // "a gzip file"
  std::string_view hint;
};

// Recognizes a format by a magic or, if it has none, by its first numbers. Nothing for all formats that Ballast reads,
// and for files that nobody can recognize.
std::optional<ForeignFormat> find_foreign_format(const FileLook& look);

// The name of a format that may hold pickles or programs which Ballast cannot look at: "a gzip file". Among numbers,
// two bytes are not a magic: a file `inside_of_archive` must also look like packed data after the magic.
std::optional<std::string> find_closed_format(std::string_view first, bool inside_of_archive);

}  // namespace ballast
