// A hash of names that come from files.
#pragma once

#include <cstdint>
#include <string_view>

namespace ballast {

// Seeded once a process, so that no file can be made whose names all collide. Never 0, never stored, never shown.
std::uint64_t hash_name(std::string_view name) noexcept;

}  // namespace ballast
