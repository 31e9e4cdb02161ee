// ls --duplicates: tensors with equal bytes, in groups.
#pragma once

#include <cstddef>
#include <span>

#include <ballast/checkpoint.hpp>

#include "../session.hpp"

namespace ballast::cli {

// Looks for duplicates among these tensors, by their numbers, and shows them. Returns the exit code.
int list_duplicates(Session& session, const Checkpoint& checkpoint, std::span<const std::size_t> searched);

}  // namespace ballast::cli
