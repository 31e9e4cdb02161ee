// The seal of a conversion cache: proof that this user made it, and that nobody has written to it since.
//
// A seal is the metadata "ballast.cache.seal" in the header of the cache, 80 digits of base 16:
//   1. when the system last changed anything about the file before it was sealed, in seconds (16 digits);
//   2. the HMAC-SHA-256, with the user's secret, of the header with zeros in place of the seal (64 digits).
// The header says where each tensor lies, and holds the record of what the cache was made of. The time guards the bytes
// of the tensors: the system sets the time of a change, and no program can set it back.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cache/user_secret.hpp"

namespace ballast {

inline constexpr std::string_view kSealKey = "ballast.cache.seal";

std::string blank_seal();  // the seal in the metadata of a cache until it is sealed

// `seconds` are added to the time, for tests that cannot wait.
void seal_cache(const std::string& path, const UserSecret& secret, std::int64_t seconds = 0);

// Throws Errc::mismatch if the seal is not that of this user, or if the file was changed later than a minute after it
// was sealed.
void check_seal(const std::string& path, const UserSecret& secret);

}  // namespace ballast
