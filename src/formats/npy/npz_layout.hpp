// The layout of an .npz, as NumPy's savez makes it and its load reads it: a zip of NAME.npy members, stored.
//
// Every member's data begin at a multiple of 64 bytes, so that they can be used where they lie. No times are kept: the
// same tensors give the same bytes.
#pragma once

#include <memory>

#include "formats/format.hpp"

namespace ballast::npy {

// Throws Errc::unsupported, with a way out, for a dtype that NumPy has no name for, and for a name that no archive
// should have: one that leads out of the folder in which somebody unpacks it, or that is not text.
std::unique_ptr<Layouts> npz_layouts(const Checkpoint& checkpoint, const SaveOptions& options);

}  // namespace ballast::npy
