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

// PROTO and a version: how every pickle since Python 2.3 begins, unless its writer chose otherwise.
bool begins_with_proto(std::string_view bytes);

// Whether bytes without PROTO could be a pickle that names a global. Cheap, and wrong only towards yes.
bool may_name_a_global(std::string_view bytes);

// Whether bytes are the first ones of a file that holds others, such as a zip: who asks for a scan knows such files.
using FileTest = bool (*)(std::span<const std::byte> first_bytes);
inline constexpr std::size_t kFileTestBytes = 512;  // that a test is given, where there are as many

// What a text could stand for, each at most as long as the text. Only readings that begin like a pickle or a file, or
// may be an old pickle, are given.
std::vector<std::string> readings_of(std::string_view text, FileTest is_file = nullptr);

// Bytes as protocols 0 to 2 write them: every byte a character, for _codecs.encode(text, "latin1"). Nothing where all
// of them are ASCII, or one is no such character. The text may be the beginning of one.
std::optional<std::string> from_latin1(std::string_view text);

bool begins_like_a_file(std::string_view bytes, FileTest is_file);

// The byte of the source at which the content of a text or bytes node begins. Nothing for those of a line, whose
// content is not in the file as it is.
std::optional<std::uint64_t> content_offset(const Graph& graph, NodeId id);

}  // namespace ballast::pickle
