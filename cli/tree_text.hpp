// A tree as text: a line for each node, with its share of all bytes as a bar.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <ballast/tree.hpp>

#include "session.hpp"

namespace ballast::cli {

// A terminal gets aligned columns under a title, and names cut to its width unless -v is given. A pipe gets the columns
// name, prefixes, tensors, parameters, bytes, share, bar and shared bytes.
void write_tree(Session& session, const Checkpoint& checkpoint, std::span<const std::size_t> numbers,
                const TreeOptions& options);

// A part of all, between 0 and 1; 0 of nothing.
double share_of(std::uint64_t part, std::uint64_t all);

// `share` of a bar that has this many columns; a share above 0 is always visible.
std::string bar(double share, std::size_t columns, bool has_blocks);

}  // namespace ballast::cli
