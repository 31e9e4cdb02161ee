// Looks up one name in the table of an architecture.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <ballast/names.hpp>

#include "layout/names_tables.hpp"

namespace ballast::names {

struct Match {
  std::string name;  // in the other style
  Change change = Change::none;
  std::uint64_t block = 0;  // the number of the block; 0 outside of blocks
  bool is_left_out = false;
};

const Architecture* find_architecture(std::string_view name) noexcept;

// The architecture that the checkpoint names: a GGUF in its typed metadata, a checkpoint made from one in its metadata.
// Empty if it names none.
std::string_view architecture_in(const Checkpoint& checkpoint) noexcept;

// The architecture that the options name, or else the checkpoint; null if it has no table.
const Architecture* find_architecture(const Checkpoint& checkpoint, const NameOptions& options) noexcept;

// The name of a tensor in `style`; nothing if the table does not have it.
std::optional<Match> match(const Architecture& architecture, NameStyle style, std::string_view name);

}  // namespace ballast::names
