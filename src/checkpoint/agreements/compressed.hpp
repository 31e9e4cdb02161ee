// Compressed tensors inside safetensors, by agreement.
//
// A compressed tensor is U8 of one dimension, still under its name: zstd frames of its byte planes and their seek table
// (tensor/packed_frames.hpp). The metadata "ballast.compressed" say what it was:
//   {"version":1,"tensors":{"NAME":{"dtype":"BF16","shape":[4096,11008]},...}}
// Version and dtype imply how the bytes are cut into chunks and planes. Every shard of a set says it of the whole set,
// so names that are not there are no fault.
#pragma once

#include <ballast/checkpoint.hpp>
#include <ballast/limits.hpp>
#include <ballast/save.hpp>

namespace ballast {

// Every tensor that shrinks by a thirty-second at least as its compressed bytes; small ones, those without data, and
// those of dtypes that safetensors has not, stay as they are. Reads and compresses everything once, for the sizes, with
// the threads and the progress of the options; what the result is read from compresses it again.
Checkpoint fold_compressed(Checkpoint checkpoint, const SaveOptions& options);

// The inverse; reads nothing. Metadata that does not fit the tensors is left as it is, with a note. Tensors that would
// unpack to more than Limits::max_expansion_... allow are Errc::limit; fold_compressed makes none by the same limits.
Checkpoint unfold_compressed(Checkpoint checkpoint, const Limits& limits);

}  // namespace ballast
