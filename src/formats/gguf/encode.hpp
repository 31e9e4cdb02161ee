// The bytes of a header, as GGUF 3 has them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <ballast/limits.hpp>
#include <ballast/shape.hpp>
#include <ballast/typed_metadata.hpp>

namespace ballast::gguf {

inline constexpr std::uint32_t kVersion = 3;

// Version 2 has the same encoding.
void append_preamble(std::string& out, std::uint32_t version, std::uint64_t tensor_count, std::uint64_t key_count);
void append_field(std::string& out, const MetadataEntry& field);
void append_tensor(std::string& out, std::string_view name, const Shape& shape, std::uint32_t type,
                   std::uint64_t offset);

// Throws Errc::limit for a header that no reader would accept.
void check_header_size(std::uint64_t size, const Limits& limits);

// The header with zeros up to where the data begin.
std::vector<std::byte> padded(const std::string& header, std::uint64_t alignment);

}  // namespace ballast::gguf
