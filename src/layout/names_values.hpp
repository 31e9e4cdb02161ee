// What converters do to values, and the way back: llama.cpp's, and those of our own maps. All lazy.
#pragma once

#include <cstdint>

#include <ballast/error.hpp>
#include <ballast/tensor.hpp>

namespace ballast::names {

// Each head's rows are two halves at Hugging Face, which rotates row i of the first with row i of the second; llama.cpp
// rotates neighbours, so GGUF has them interleaved. Throws Errc::mismatch where the rows are no pairs of that many
// heads.
Tensor interleave_halves(const Tensor& tensor, std::uint64_t head_count);
Tensor separate_halves(const Tensor& tensor, std::uint64_t head_count);

// A dtype and a shape, whose bytes are made of the tensor's in a way that is not known: reading them throws `why`.
Tensor unreadable(Tensor tensor, Error why);
const Error* why_unreadable(const Tensor& tensor);  // nothing of any other tensor

// In F32, but for one rounding on the way there: the converter adds in F16 where weights are F16.
Tensor add_one(const Tensor& tensor);
Tensor subtract_one(const Tensor& tensor);

// Each sum rounded to the tensor's own dtype.
Tensor add_number(const Tensor& tensor, double number);

// A view as a tensor of its own: the same values in that order, in a shape that strides could not give it.
Tensor in_order(const Tensor& view, Shape shape);

}  // namespace ballast::names
