// One name looked up in the table of an architecture.
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
  std::uint64_t block = 0;  // its number; 0 outside of one
  bool is_left_out = false;
};

const Architecture* find_architecture(std::string_view name) noexcept;

// As the checkpoint calls its own: a GGUF in its fields, what was made of one in its metadata. Empty where it does not.
std::string_view architecture_in(const Checkpoint& checkpoint) noexcept;

// The one that the options name, or else the checkpoint; nothing where there is no table of it.
const Architecture* find_architecture(const Checkpoint& checkpoint, const NameOptions& options) noexcept;

// What a tensor is called in `style`; nothing where the table does not say.
std::optional<Match> match(const Architecture& architecture, NameStyle style, std::string_view name);

}  // namespace ballast::names
