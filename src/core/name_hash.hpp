// A hash of names that come from files.
#pragma once

#include <cstdint>
#include <string_view>

namespace ballast {

// Seeded once a process, so that no file can be made whose names all collide. Never 0, never stored, never shown.
std::uint64_t hash_name(std::string_view name) noexcept;

// As much of it as a slot of a table holds.
inline std::uint32_t short_name_hash(std::string_view name) noexcept {
  return static_cast<std::uint32_t>(hash_name(name));
}

}  // namespace ballast
