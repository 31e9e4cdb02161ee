// GGUF models in several files: NAME-00001-of-00003.gguf and so on, each a GGUF file of its own with some of the
// tensors. The first part has the metadata of all; every part has the keys split.no (from 0), split.count and
// split.tensors.count.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <ballast/typed_metadata.hpp>

#include "core/shard_name.hpp"
#include "formats/gguf/reader.hpp"

namespace ballast::gguf {

// What the path of a part says; nothing if the file is not named like a part.
std::optional<ShardName> parse_part_name(const std::string& path);

// The paths of all parts of the set that a part belongs to; for any other file, its own path. Errc::limit if there are
// too many.
std::vector<std::string> set_of(const std::string& path, const Limits& limits);

// What the keys say; nothing if there are none, or if they say that the parts were joined (a count of 0).
std::optional<Split> split_of(const TypedMetadata& fields);

// The metadata of one part of a set, and the metadata of a set that was joined.
TypedMetadata fields_of_part(const TypedMetadata& whole, std::uint64_t number, std::uint64_t count,
                             std::uint64_t tensors);
TypedMetadata without_split(TypedMetadata fields);

// Reads the whole set that a file belongs to, whichever part it is: the tensors of all parts in order, the metadata of
// the first part without split.*. The other parts are opened by their names. A file that is not a part is read alone.
// Errc::not_found names the part that is missing; parts that contradict each other are Errc::malformed.
GgufFile read_set(const SourcePtr& file, const Files& files, const ReadOptions& options = {});

// Files that were cut with `split` rather than by gguf-split are not GGUF files. Returns what to do about a file with
// such a name ("model.gguf.part1of2", "model.gguf-split-a"); nothing for other names.
std::optional<std::string> raw_split_hint(const std::string& path);

}  // namespace ballast::gguf
