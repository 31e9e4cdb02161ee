// The bytes of a header, as GGUF 3 has them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <ballast/fields.hpp>
#include <ballast/shape.hpp>

namespace ballast::gguf {

void append_preamble(std::string& out, std::uint64_t tensor_count, std::uint64_t key_count);
void append_field(std::string& out, const Field& field);
void append_tensor(std::string& out, std::string_view name, const Shape& shape, std::uint32_t type,
                   std::uint64_t offset);

}  // namespace ballast::gguf
