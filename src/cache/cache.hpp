// The conversion cache, as open() uses it. Where it lies: cache_place.hpp; what it is made of: cache_identity.hpp; what
// is in it: cache_record.hpp and cache_tensors.hpp.
#pragma once

#include <optional>
#include <string>

#include <ballast/checkpoint.hpp>
#include <ballast/open.hpp>

namespace ballast {

// The whole checkpoint (options.root is the caller's business) from a valid cache of it. Nothing where there is none,
// which takes a few microseconds to find out.
std::optional<Checkpoint> open_cached(const std::string& target, const OpenOptions& options);

// What to go on with after opening `original`, the whole of it: the same from a cache that was made of it, or itself
// where options.cache asks for none; with a remark, where none could be made. Throws Errc::cancelled.
Checkpoint make_cache(const std::string& target, Checkpoint original, const OpenOptions& options);

}  // namespace ballast
