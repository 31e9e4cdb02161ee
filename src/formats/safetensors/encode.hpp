// The text of a header, as the reference library writes it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <ballast/checkpoint.hpp>
#include <ballast/limits.hpp>

namespace ballast::safetensors {

// "__metadata__":{"key":"value"}, keys sorted. Throws Errc::unsupported for text that is not UTF-8.
void append_metadata(std::string& out, const Metadata& metadata);

// "name":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}
void append_entry(std::string& out, const StateDict::Entry& entry, std::uint64_t begin);

// A header's length and text as bytes. The text is padded with spaces to `length` if it fits, so that the data stay
// where they are, else to a multiple of 8. Throws Errc::limit for a header that no reader would accept.
std::vector<std::byte> frame_header(std::string_view text, std::uint64_t length, const Limits& limits);

}  // namespace ballast::safetensors
