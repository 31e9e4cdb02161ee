// Compressed tensors, both ways, made as they are read: a tensor's bytes as zstd frames, and frames as the bytes.
//
// Any range is made from just the chunks that it touches (packed_frames.hpp). A thread keeps the buffers and contexts
// for a chunk, and the last chunk of which a range took a part, since the next range is likely to take the rest.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ballast/tensor.hpp>

namespace ballast {

// The size of the frame that a chunk of the tensor becomes. This compresses the chunk, because the sizes of all frames
// must be known before a file is laid out.
std::uint32_t measure_frame(const Tensor& tensor, std::uint64_t chunk);

// The bytes of all these frames and of their table.
std::uint64_t packed_bytes(const std::vector<std::uint32_t>& frame_bytes);

// The tensor's bytes as frames of the sizes that measure_frame() gave, followed by their table. The chunks are
// compressed again whenever they are read; a frame that then has another size is Errc::changed. `name` is for errors.
StoragePtr packed_storage(Tensor tensor, std::vector<std::uint32_t> frame_bytes, std::string name);

// The inverse: the `bytes` bytes of elements of `dtype` that the bytes of `packed` (U8, contiguous) stand for. Nothing
// is read before it is needed, not even the table. Throws Errc::malformed if `packed` is too small for the table of
// that many bytes; reading throws it if the table or a frame is wrong.
StoragePtr unpacked_storage(Tensor packed, DType dtype, std::uint64_t bytes, std::string name);

// The bytes that a tensor takes in its file: the bytes of its frames, if it is compressed.
std::uint64_t stored_bytes(const Tensor& tensor);

}  // namespace ballast
