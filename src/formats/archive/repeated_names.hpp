// Finds the members of an archive whose name an earlier member has.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <vector>

#include "core/name_hash.hpp"

namespace ballast::archive {

// Returns the numbers of these members, ascending. Sorting by hash is several times as fast as a hash set of a million
// names.
template <class Member>
std::vector<std::size_t> repeated_names(const std::vector<Member>& members) {
  struct Key {
    std::uint64_t hash;
    std::size_t number;
  };
  std::vector<Key> keys(members.size());
  for (std::size_t i = 0; i < members.size(); ++i) keys[i] = {hash_name(members[i].name), i};
  std::sort(keys.begin(), keys.end(), [&](const Key& a, const Key& b) {
    if (a.hash != b.hash) return a.hash < b.hash;
    return std::tie(members[a.number].name, a.number) < std::tie(members[b.number].name, b.number);
  });

  std::vector<std::size_t> repeated;
  for (std::size_t i = 1; i < keys.size(); ++i) {
    const Key &one = keys[i - 1], &next = keys[i];
    if (one.hash == next.hash && members[one.number].name == members[next.number].name) repeated.push_back(next.number);
  }
  std::sort(repeated.begin(), repeated.end());
  return repeated;
}

}  // namespace ballast::archive
