// Notes about what a checkpoint has and a file of another format will not have. Nothing is left out silently.
#pragma once

#include <vector>

#include <ballast/checkpoint.hpp>
#include <ballast/save.hpp>

#include "formats/format.hpp"

namespace ballast {

// Notes about plain values, metadata and what holds the parts of a tensor together, if the checkpoint is saved as it is
// in this format with these options. The tensors themselves all arrive, or the save is refused.
std::vector<Note> what_is_left_out(const Checkpoint& checkpoint, const FileFormat& format, const SaveOptions& options);

// A note about the values alone, for a format that cannot keep them, or keeps them only if asked to.
void note_values_left_out(const Checkpoint& checkpoint, bool could_be_kept, std::vector<Note>& notes);

}  // namespace ballast
