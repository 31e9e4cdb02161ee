// Bytes as text that fits into JSON and into any other text: base64 with padding (RFC 4648).
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ballast {

std::string to_base64(std::span<const std::byte> bytes);

// Empty if the text is not base64: it has another character or a wrong length.
std::optional<std::vector<std::byte>> from_base64(std::string_view text);

}  // namespace ballast
