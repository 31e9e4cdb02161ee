// PrefixTree: names as a tree of the prefixes that they share, before anything is folded.
//
// A node is a prefix of several names up to a '.', a '/' or an end, or a whole name. It has what its prefix adds to
// that of its parent, so that names of any length make at most two nodes each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace ballast {

struct PrefixNode {
  static constexpr std::uint32_t kNone = static_cast<std::uint32_t>(-1);

  std::string_view label{};       // a part of one of the names
  std::uint32_t name = kNone;     // the number of the name that ends here
  std::uint32_t first_child = 0;  // children lie one after the other, in the natural order of their labels
  std::uint32_t children = 0;
  char separator = 0;  // what stands before the label; 0 for the first labels
};

// The first node is the empty prefix of all names; every node comes before its children. Names must be different, and
// outlive the tree. Takes time in proportion to the bytes of the names.
std::vector<PrefixNode> prefix_tree(std::span<const std::string_view> names);

inline bool is_separator(char c) noexcept { return c == '.' || c == '/'; }

// Where the part of a name that begins at `begin` ends. Parts are short, so this takes less time than find_first_of().
inline std::size_t end_of_part(std::string_view name, std::size_t begin = 0) noexcept {
  while (begin < name.size() && !is_separator(name[begin])) ++begin;
  return begin;
}

}  // namespace ballast
