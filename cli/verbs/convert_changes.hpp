// What convert makes of the checkpoint that it opens: other tensors, names, values and metadata.
#pragma once

#include <ballast/checkpoint.hpp>
#include <ballast/json.hpp>

#include "convert_flags.hpp"

namespace ballast::cli {

struct Converted {
  Checkpoint opened;      // as it was opened; empty if nobody asks what lay beside it
  Checkpoint checkpoint;  // what is to be written
  Json config;            // what becomes config.json; null if nothing does
};

// Opens the input and applies what the flags ask for, in the order in which the help lists it. `takes_files_along`:
// whether somebody asks what lay beside the input.
Converted converted(const Session& session, const ConvertFlags& flags, bool takes_files_along);

}  // namespace ballast::cli
