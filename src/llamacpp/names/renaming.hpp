// One checkpoint's tensors, gathered by the rows of its architecture's table and made what the other style has.
#pragma once

#include <ballast/checkpoint.hpp>
#include <ballast/names.hpp>

#include "llamacpp/names/tables.hpp"

namespace ballast::names {

// Throws as to_names() does. Notes say what has no counterpart, is left out, or changes its type.
void rename_tensors(Checkpoint& checkpoint, const Architecture& architecture, NameStyle style,
                    const NameOptions& options);

}  // namespace ballast::names
