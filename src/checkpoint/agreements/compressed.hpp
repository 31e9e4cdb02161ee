// Compressed tensors inside safetensors, by agreement.
//
// A compressed tensor is U8 of one dimension, still under its name: zstd frames of its byte planes and their seek table
// (tensor/packed_frames.hpp). The metadata "ballast.compressed" say what it was:
//   {"version":1,"tensors":{"NAME":{"dtype":"BF16","shape":[4096,11008]},...}}
// Version and dtype imply how the bytes are cut into chunks and planes. Every shard of a set lists the tensors of the
// whole set, so names that are missing from a shard are not an error.
#pragma once

#include <ballast/checkpoint.hpp>
#include <ballast/limits.hpp>
#include <ballast/save.hpp>

namespace ballast {

// Every tensor that shrinks by at least a thirty-second becomes its compressed bytes. Small tensors, those without
// data, and those of dtypes that safetensors does not have, stay as they are. Reads and compresses everything once, to
// know the sizes, with the threads and the progress of the options; reading the result compresses it again.
Checkpoint fold_compressed(Checkpoint checkpoint, const SaveOptions& options);

// The inverse; reads nothing. Metadata that does not fit the tensors is left as it is, with a note. Tensors that would
// unpack to more than Limits::max_expansion_... allow are Errc::limit; fold_compressed makes none by the same limits.
Checkpoint unfold_compressed(Checkpoint checkpoint, const Limits& limits);

}  // namespace ballast
