// ggml's numbers of its types.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <ballast/dtype.hpp>

namespace ballast::gguf {

// Nothing for a number that is not in our table.
std::optional<DType> dtype_from_ggml(std::uint32_t id) noexcept;

// For a number that is not in our table: throws Errc::unsupported for a type that ggml has removed, Errc::malformed for
// a number that no ggml type can have. If it returns, the type is newer than this program.
void check_unknown_type(std::uint32_t id);

std::string unknown_type_name(std::uint32_t id);  // "GGML_57"

}  // namespace ballast::gguf
