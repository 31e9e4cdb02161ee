// Compressed tensors, both ways, made as they are read: a tensor's bytes as zstd frames, and such frames as the bytes.
//
// Any range is made from just the chunks that it touches (packed_frames.hpp). A thread keeps the buffers and contexts
// for a chunk, and the last chunk that a range took a part of, since the next range is likely to take the rest.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ballast/tensor.hpp>

namespace ballast {

// The size of the frame that a chunk of the tensor becomes. This compresses it: the sizes of all of them must be known
// before a file is laid out.
std::uint32_t measure_frame(const Tensor& tensor, std::uint64_t chunk);

// How many bytes so many frames, and their table, are.
std::uint64_t packed_bytes(const std::vector<std::uint32_t>& frame_bytes);

// The tensor's bytes as frames of the sizes that measure_frame() gave, followed by their table. They are compressed
// again whenever they are read; a frame that has another size then is Errc::changed. `name` is for errors.
StoragePtr packed_storage(Tensor tensor, std::vector<std::uint32_t> frame_bytes, std::string name);

// The inverse: the `bytes` bytes of elements of `dtype` that the bytes of `packed` (U8, contiguous) stand for. Nothing
// is read before it is needed, the table neither. Throws Errc::malformed where there is no room for the table of that
// many bytes; reading does where table and frames are not what they should be.
StoragePtr unpacked_storage(Tensor packed, DType dtype, std::uint64_t bytes, std::string name);

// The bytes that a tensor takes in its file: those of its frames, where it is one of these.
std::uint64_t stored_bytes(const Tensor& tensor);

}  // namespace ballast
