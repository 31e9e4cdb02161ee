// Reads a safetensors file: the header and nothing else.
#pragma once

#include <memory>
#include <span>

#include <ballast/checkpoint.hpp>
#include <ballast/limits.hpp>
#include <ballast/source.hpp>

#include "formats/safetensors/header.hpp"

namespace ballast::safetensors {

struct ReadOptions {
  Limits limits{};
  bool lenient = false;  // trailing bytes after the last tensor become a note
};

Checkpoint read(const SourcePtr& source, const ReadOptions& options);

// The header's text. Its length is checked against the file and the limits.
std::shared_ptr<const PaddedText> read_header_text(const Source& source, const Limits& limits);

// Whether the first bytes of a file can be a header's length and the beginning of a JSON object.
bool looks_like_safetensors(std::span<const std::byte> first_bytes);

// Whether a file that does not look like safetensors was one before it was damaged. One of these holds:
//   1. the ninth byte is '{', the first of a header, '"', '}' or a space follows, and the length before it is not text;
//   2. the length fits the file, and the bytes that it counts are text, or end as a header does: in '}' and spaces;
//   3. there are only the eight bytes of a length, and the upper four are zeros.
// If a file is_too_short() for a length, nobody can tell what it was, unless another format claims it.
bool is_too_short(const Source& source);
bool looks_like_damaged_safetensors(const Source& source, std::span<const std::byte> first_bytes);

}  // namespace ballast::safetensors
