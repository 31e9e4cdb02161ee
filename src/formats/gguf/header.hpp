// The header of a GGUF file, read in one pass.
//
//   4     "GGUF"             these bytes in this order, in big-endian files too
//   u32   version            1, 2 or 3; with its bytes reversed in a big-endian file
//   u64   tensor count       in version 1 these two, every length and every dimension are u32
//   u64   key count
//   keys                     string key, u32 value type, the value
//   tensors                  string name, u32 rank, u64 dimensions (fastest first), u32 ggml type, u64 offset
//   zeros                    up to a multiple of general.alignment (32 unless it says otherwise)
//   data                     offsets count from here
//
// A string is a u64 length and its bytes; an array a u32 element type, a u64 count and its elements.
#pragma once

#include <bit>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include <ballast/limits.hpp>
#include <ballast/shape.hpp>
#include <ballast/source.hpp>
#include <ballast/typed_metadata.hpp>

#include "formats/gguf/header_text.hpp"

namespace ballast::gguf {

inline constexpr std::uint32_t kMaxRank = 4;      // GGML_MAX_DIMS
inline constexpr std::size_t kMaxNameBytes = 63;  // GGML_MAX_NAME, less the zero behind it
inline constexpr std::uint64_t kDefaultAlignment = 32;
inline constexpr std::uint64_t kMaxAlignment = std::uint64_t{1} << 20;
inline constexpr std::string_view kAlignmentKey = "general.alignment";

struct TensorInfo {
  std::string_view name;
  Shape shape;              // as NumPy has it: the fastest dimension last
  std::uint32_t type = 0;   // ggml's number; may be one that we do not know
  std::uint64_t numel = 0;  // fits 63 bits
  std::uint64_t offset = 0;
  std::uint64_t position = 0;  // of the entry in the file
};

struct Header {
  std::uint32_t version = 3;
  std::endian order = std::endian::little;
  std::uint64_t alignment = kDefaultAlignment;
  TypedMetadata fields;
  std::vector<TensorInfo> tensors;   // in the file's order; duplicates not yet refused
  std::shared_ptr<const char> text;  // holds the names
  std::uint64_t fields_end = 0;      // in the file: where the tensors begin
  std::uint64_t end = 0;             // in the file, before the zeros
  std::uint64_t data_offset = 0;     // in the file; may lie past its end if there are no tensors
};

// Every rule about the header itself is checked; errors name the key or the tensor, and the byte.
Header read_header(const Source& source, const Limits& limits);

// The alignment that `fields` say, or 32 if they say none. Throws Errc::malformed if it is not a u32 or not a power of
// two.
std::uint64_t alignment_of(const TypedMetadata& fields);

// Whether the first bytes of a file are those of a GGUF file.
bool looks_like_gguf(std::span<const std::byte> first_bytes);

}  // namespace ballast::gguf
