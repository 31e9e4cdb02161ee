// The bytes of a header, as GGUF 3 has them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <ballast/limits.hpp>
#include <ballast/shape.hpp>
#include <ballast/typed_metadata.hpp>

namespace ballast::gguf {

inline constexpr std::uint32_t kVersion = 3;

// The preamble and all fields. Version 2 has the same encoding. `room` is for what the caller will append, so that a
// header of many megabytes is never copied.
std::vector<std::byte> encoded_fields(std::uint32_t version, std::uint64_t tensor_count, const TypedMetadata& fields,
                                      std::size_t room = 0);
void append_tensor(std::vector<std::byte>& out, std::string_view name, const Shape& shape, std::uint32_t type,
                   std::uint64_t offset);

// Throws Errc::limit for a header that no reader would accept.
void check_header_size(std::uint64_t size, const Limits& limits);

// Appends zeros up to where the data begin.
void pad(std::vector<std::byte>& header, std::uint64_t alignment);

}  // namespace ballast::gguf
