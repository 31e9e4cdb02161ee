// A hash of names that come from files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace ballast {

// Seeded once a process, so that no file can be made whose names all collide. Never 0, never stored, never shown.
std::uint64_t hash_name(std::string_view name) noexcept;

// As much of it as a slot of a table holds.
inline std::uint32_t short_name_hash(std::string_view name) noexcept {
  return static_cast<std::uint32_t>(hash_name(name));
}

// For the tables of the standard library.
struct NameHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view name) const noexcept { return hash_name(name); }
};
template <class Value>
using NameMap = std::unordered_map<std::string, Value, NameHash, std::equal_to<>>;
template <class Value>
using NameViewMap = std::unordered_map<std::string_view, Value, NameHash, std::equal_to<>>;

}  // namespace ballast
