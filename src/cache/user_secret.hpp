// UserSecret: random bytes that only this user knows, kept in state_folder(). A cache that is signed with them was made
// by this user, and did not come out of somebody's archive.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>

namespace ballast {

using UserSecret = std::array<std::byte, 32>;

// Nothing if none was made yet. Throws Errc::unsafe if others can read or replace the file that holds the secret, and
// Errc::io if it cannot be read.
std::optional<UserSecret> read_user_secret();

// The same, and makes one if there is none. Throws Errc::io if none can be written.
UserSecret make_user_secret();

}  // namespace ballast
