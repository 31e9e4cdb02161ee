// Reads a safetensors file: the header and nothing else.
#pragma once

#include <memory>
#include <span>

#include <ballast/checkpoint.hpp>
#include <ballast/limits.hpp>

#include "formats/safetensors/header.hpp"
#include "io/byte_source.hpp"

namespace ballast::safetensors {

struct ReadOptions {
  Limits limits{};
  bool lenient = false;  // trailing bytes after the last tensor become a note
};

Checkpoint read(const io::ByteSourcePtr& source, const ReadOptions& options);

// The header's text, its length checked against the file and the limits.
std::shared_ptr<const PaddedText> read_header_text(const io::ByteSource& source, const Limits& limits);

// Whether the first bytes of a file can be a header's length and the beginning of a JSON object.
bool looks_like_safetensors(std::span<const std::byte> first_bytes);

}  // namespace ballast::safetensors
