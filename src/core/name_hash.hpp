// A hash of names that come from files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace ballast {

// The hash is seeded once a process, so that nobody can make a file whose names all collide. A hash is never 0, never
// stored, never shown.
std::uint64_t hash_name(std::string_view name) noexcept;

// The bits of the hash that fit into a slot of a table.
inline std::uint32_t shortened(std::uint64_t hash) noexcept { return static_cast<std::uint32_t>(hash); }
inline std::uint32_t short_name_hash(std::string_view name) noexcept { return shortened(hash_name(name)); }

// For the hash tables of the standard library.
struct NameHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view name) const noexcept { return hash_name(name); }
};
template <class Value>
using NameMap = std::unordered_map<std::string, Value, NameHash, std::equal_to<>>;
template <class Value>
using NameViewMap = std::unordered_map<std::string_view, Value, NameHash, std::equal_to<>>;

}  // namespace ballast
