// What a file really is, told by its first bytes and never by its name.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "io/byte_source.hpp"

namespace ballast {

enum class Content : std::uint8_t { safetensors, json, zip, tar, pickle, npy, gguf };

// Throws, with a sentence that says what the file is and what to do, for everything that cannot be opened.
Content detect(const io::ByteSource& source);

// The same for a file that may well be no checkpoint, such as a member of an archive: then nothing.
std::optional<Content> detect_quietly(const io::ByteSource& source);

// Whether bytes, the first of a file or of a string, are those of what may hold pickles inside: a zip, a tar, an npy.
bool begins_like_a_container(std::span<const std::byte> first_bytes);

// What Ballast cannot look into, by its magic: "a gzip file"; nothing for all else. Among numbers two bytes are no
// magic: what is inside of an archive must look like packed data further on, too.
enum class Within : std::uint8_t { folder, archive };
std::optional<std::string> find_closed_content(const io::ByteSource& source, Within within);

// Whether the last bytes are the end record of a zip without a comment.
bool ends_as_zip(const io::ByteSource& source);

}  // namespace ballast
