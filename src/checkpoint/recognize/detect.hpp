// What a file really is, told by its first bytes and never by its name.
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

// A file, what it is, and what was made of it to find that out. Its reader goes on from there.
struct Recognized {
  FileToRead file;
  const FileFormat* format = nullptr;  // nothing for JSON: an index of shards at best

  bool is_json() const noexcept { return format == nullptr; }
};

// Reads the beginning and the end. Throws, with a sentence that says what the file is and what to do, for everything
// that cannot be opened.
Recognized recognize(const SourcePtr& source, const Limits& limits);

// The file with so much of its beginning in memory that nobody asks for that again.
SourcePtr with_beginning(const SourcePtr& source);

// Whether the first bytes are those of a checkpoint: for files that may well be none, such as members of archives.
bool begins_like_a_checkpoint(const Source& source);

// Whether bytes, the first of a file or of a string, are those of what may hold pickles inside: a zip, a tar, an npy.
bool begins_like_a_container(std::span<const std::byte> first_bytes);

// What Ballast cannot look into, by its magic: "a gzip file"; nothing for all else. Among numbers two bytes are no
// magic: what is inside of an archive must look like packed data further on, too.
enum class Within : std::uint8_t { folder, archive };
std::optional<std::string> find_closed_content(const Source& source, Within within);

// One way in which some program would read a file.
struct Reading {
  const FileFormat* format;
  std::uint64_t offset = 0;  // of what says so: 0, or the end record of a zip
};

// Every way in which some program would read a file, by the bytes at its beginning and at its end; the one that Ballast
// would choose first. A file with more than one has two meanings: recognize() refuses it. docs/one_meaning.md says
// which bytes must agree, and how rarely they do so by chance. Pickles without a magic are not looked for.
std::vector<Reading> readings_of(const Source& source);

// "begins as a pickle and ends as a zip archive", of readings that are more than one.
std::string text_of(const std::vector<Reading>& readings);

}  // namespace ballast
