// Pickles hidden in the strings of others: as they are, or written out as hex, base64, Latin-1 or escapes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/pickle/graph.hpp"

namespace ballast::pickle {

// PROTO and a version: every pickle since Python 2.3 begins so, unless its writer chose otherwise.
bool begins_with_proto(std::string_view bytes);

// Whether bytes without PROTO could be a pickle that names a global. The test is cheap, and wrong only if it says yes.
bool may_name_a_global(std::string_view bytes);

// Whether bytes are the first ones of a file that holds others, such as a zip: the caller of a scan knows such files.
using FileTest = bool (*)(std::span<const std::byte> first_bytes);
inline constexpr std::size_t kFileTestBytes = 512;  // given to the test, if there are as many

// The bytes that a text could stand for, each at most as long as the text. Only readings that begin like a pickle or a
// file, or may be an old pickle, are returned.
std::vector<std::string> readings_of(std::string_view text, FileTest is_file = nullptr);

// Decodes bytes as protocols 0 to 2 write them: every byte as a character, for _codecs.encode(text, "latin1"). Nothing
// if all of them are ASCII, or if a character is above 255. The text may be cut off.
std::optional<std::string> from_latin1(std::string_view text);

bool begins_like_a_file(std::string_view bytes, FileTest is_file);

// The byte of the source at which the content of a text or bytes node begins. Nothing for a node that a line gives,
// whose content is not in the file as it is.
std::optional<std::uint64_t> content_offset(const Graph& graph, NodeId id);

}  // namespace ballast::pickle
