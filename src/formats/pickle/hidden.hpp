// Pickles hidden in the strings of others: as they are, or written out as hex, base64, Latin-1 or escapes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/pickle/graph.hpp"

namespace ballast::pickle {

// PROTO and a version: how every pickle since Python 2.3 begins, unless its writer chose otherwise.
bool begins_with_proto(std::string_view bytes);

// Whether bytes without PROTO could be a pickle that names a global. Cheap, and wrong only towards yes.
bool may_name_a_global(std::string_view bytes);

// What a text could stand for, each at most as long as the text. Only readings that begin like a pickle or may be an
// old one are given.
std::vector<std::string> readings_of(std::string_view text);

// The byte of the source at which the content of a text or bytes node begins. Nothing for those of a line, whose
// content is not in the file as it is.
std::optional<std::uint64_t> content_offset(const Graph& graph, NodeId id);

}  // namespace ballast::pickle
