// What a file really is, told by its first bytes and never by its name.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "io/byte_source.hpp"

namespace ballast {

enum class Content : std::uint8_t { safetensors, json };

// Throws, with a sentence that says what the file is and what to do, for everything that cannot be opened.
Content detect(const io::ByteSource& source);

}  // namespace ballast
