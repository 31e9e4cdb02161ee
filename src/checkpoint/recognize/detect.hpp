// What a file really is, recognized by its first bytes and never by its name.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <ballast/limits.hpp>
#include <ballast/source.hpp>

#include "formats/format.hpp"

namespace ballast {

// A file, its format, and what was read from it to find that out. The reader of the format continues from there.
struct Recognized {
  FileToRead file;
  const FileFormat* format = nullptr;  // null for JSON: an index of shards, or not a checkpoint

  bool is_json() const noexcept { return format == nullptr; }
};

// Reads the beginning and the end; of a remote file the end only if `checks_end`. For everything that cannot be opened,
// throws an error that says what the file is and what to do.
Recognized recognize(const SourcePtr& source, const Limits& limits, bool checks_end = true);

// The file with so much of its beginning in memory that the beginning is not read again.
SourcePtr with_beginning(const SourcePtr& source);

// Whether the first bytes are those of a checkpoint: for files that may well not be one, such as members of archives.
bool begins_like_a_checkpoint(const Source& source);

// Whether bytes, the first of a file or of a string, begin a container that may hold pickles: a zip, a tar, an npy.
bool begins_like_a_container(std::span<const std::byte> first_bytes);

// The name of a format that Ballast cannot look into, recognized by its magic: "a gzip file"; nothing for anything
// else. Among numbers, two bytes are not a magic: a member of an archive must also look like packed data after the
// magic.
enum class Within : std::uint8_t { folder, archive };
std::optional<std::string> find_closed_content(const Source& source, Within within);

// One way in which some program would read a file.
struct Reading {
  const FileFormat* format;
  std::uint64_t offset = 0;  // of the evidence: 0, or the end record of a zip
};

// Every way in which some program would read a file, by the bytes at its beginning and at its end; the way that Ballast
// would choose comes first. A file with more than one has two meanings: recognize() refuses it. docs/one_meaning.md
// says which bytes must agree, and how rarely they do so by chance. Pickles without a magic are not looked for.
std::vector<Reading> readings_of(const Source& source, bool checks_end = true);

// "begins as a pickle and ends as a zip archive", for more than one reading.
std::string text_of(const std::vector<Reading>& readings);

}  // namespace ballast
