// Files that Ballast does not read, told by their bytes: what each of them is, and what to do with it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <ballast/source.hpp>

namespace ballast {

inline constexpr std::size_t kLookBytes = 512;  // what is enough to tell: a tar says what it is at byte 257

// What is enough of a file to tell what it is.
struct FileLook {
  std::string_view first;  // its first bytes, at most kLookBytes
  const Source& source;
};

struct ForeignFormat {
  std::string what;  // "a gzip file"
  std::string_view hint;
};

// By a magic or, for formats without one, by what the first numbers must be. Nothing for all that Ballast reads, and
// for what nobody can tell.
std::optional<ForeignFormat> find_foreign_format(const FileLook& look);

// Formats that may hold pickles or programs which Ballast cannot look at: "a gzip file". Among numbers two bytes are
// not a magic: what is `inside_of_archive` must look like packed data further on, too.
std::optional<std::string> find_closed_format(std::string_view first, bool inside_of_archive);

}  // namespace ballast
