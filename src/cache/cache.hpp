// The conversion cache, as open() uses it. location.hpp says where it lies, identity.hpp what it is made of, record.hpp
// and tensors.hpp what is in it.
#pragma once

#include <optional>
#include <string>

#include <ballast/checkpoint.hpp>
#include <ballast/open.hpp>

namespace ballast {

// The whole checkpoint (the caller applies options.root) from a valid cache of it. Nothing if there is no such cache,
// which takes a few microseconds to find out.
std::optional<Checkpoint> open_cached(const std::string& target, const OpenOptions& options);

// Takes `original`, the whole of a checkpoint, and returns the same checkpoint from a cache that was made of it.
// Returns `original` itself if options.cache asks for no cache, and, with a remark, if none could be made. Throws
// Errc::cancelled.
Checkpoint make_cache(const std::string& target, Checkpoint original, const OpenOptions& options);

}  // namespace ballast
