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

// Whether the last bytes are the end record of a zip without a comment.
bool ends_as_zip(const io::ByteSource& source);

}  // namespace ballast
