// Text that stands for bytes: each character below U+0100 is one byte. It is decoded as it is read, from the first byte
// on.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <ballast/source.hpp>
#include <ballast/storage.hpp>

namespace ballast::torch {

// Decodes UTF-8 in memory. Throws Errc::malformed if a character is not in Latin-1.
std::vector<std::byte> decode_latin1(std::string_view utf8);

// `text_bytes` of UTF-8 at `offset` of the source, which must decode to `size_bytes`.
StoragePtr latin1_storage(SourcePtr source, std::uint64_t offset, std::uint64_t text_bytes, std::uint64_t size_bytes);

}  // namespace ballast::torch
