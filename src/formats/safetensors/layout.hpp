// The layout of a safetensors file: the bytes of the header, and where each tensor goes.
//
// The file is byte for byte what the reference library writes for the same tensors, with the metadata sorted.
#pragma once

#include <memory>

#include "formats/format.hpp"

namespace ballast::safetensors {

// Throws Errc::unsupported for a dtype that safetensors cannot store, Errc::limit for a header that no reader would
// accept. The file has no path yet.
SavePlan::File lay_out(Entries entries, const Metadata& metadata, const Limits& limits = {});

std::unique_ptr<Layouts> layouts(const Checkpoint& checkpoint, const SaveOptions& options);

}  // namespace ballast::safetensors
