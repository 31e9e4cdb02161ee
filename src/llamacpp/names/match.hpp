// Looks up one name in the table of an architecture.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ballast/names.hpp>

#include "llamacpp/names/tables.hpp"

namespace ballast::names {

struct Match {
  const Row* row = nullptr;  // null if the tensor is left out
  std::string suffix;        // ".weight", ".bias"; empty if the row names whole tensors
  std::uint64_t block = 0;   // the number of the block in GGUF; 0 outside of blocks
  std::size_t part = 0;      // which of the names that the row has on this side
  std::uint64_t number = 0;  // of one of several tensors that are stacked
  Change change = Change::none;
  bool is_left_out = false;

  // The names that the row has for this block in `style`, with the suffix. One with # still has it.
  std::vector<std::string> names_in(NameStyle style, std::uint64_t main_blocks = 0) const;
  std::string name;  // the first of them in the other style
};

// A name in which # stands for the number.
std::string with_number(std::string_view name, std::uint64_t number);

const Architecture* find_architecture(std::string_view name) noexcept;

// The architecture that the checkpoint names: a GGUF in its typed metadata, a checkpoint made from one in its metadata.
// Empty if it names none.
std::string_view architecture_in(const Checkpoint& checkpoint) noexcept;

// The architecture that the options name, or else the checkpoint; null if it has no table.
const Architecture* find_architecture(const Checkpoint& checkpoint, const NameOptions& options) noexcept;

// What decides about a name besides the name.
struct Circumstances {
  std::uint64_t main_blocks = 0;  // blocks before those that predict further tokens; 0 if all blocks are such
  bool is_mxfp4 = false;          // the tensor is made of ggml's MXFP4 blocks
};

// What the table says about a tensor whose name is to be in `style`; nothing if it does not have it.
std::optional<Match> match(const Architecture& architecture, NameStyle style, std::string_view name,
                           const Circumstances& circumstances = {});

// Whether a name that the table does not have belongs to a tower for images or sounds.
bool is_of_tower(std::string_view name) noexcept;

}  // namespace ballast::names
