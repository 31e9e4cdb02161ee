// Where this user keeps what Ballast makes, and which folders nobody else can write to.
#pragma once

#include <string>

namespace ballast {

// $XDG_STATE_HOME/ballast, or ~/.local/state/ballast; empty if the environment names neither. For the caches' folder
// see cache_folder() in cache.hpp.
std::string state_folder();

// Makes the folder, readable by this user alone, and its parents. Failures show when the folder is used.
void make_user_folder(const std::string& folder);

// Whether the folder belongs to this user, and nobody else can put a file there. A group counts as somebody else.
bool is_private_folder(const std::string& folder);

}  // namespace ballast
