// Bytes as text that a page can hold, and as short as they get.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace ballast::cli {

std::string base64(std::string_view bytes);

// A zlib stream, in base64: what a browser's DecompressionStream("deflate") takes.
std::string packed(std::string_view text);

// SHA-256 in base64, as Content-Security-Policy names a script.
std::string sha256_base64(std::string_view text);

// `count` bytes from the system's source of random numbers, in hexadecimal digits. Throws Errc::io.
std::string random_hex(std::size_t count);

// Compares all of both, so that the time tells nothing of where they differ.
bool same_secret(std::string_view a, std::string_view b);

}  // namespace ballast::cli
