// What converters do to values, and the way back: llama.cpp's converter, and our own weight maps. All lazy.
#pragma once

#include <cstdint>

#include <ballast/error.hpp>
#include <ballast/tensor.hpp>

namespace ballast::names {

// At Hugging Face each head's rows are two halves, and row i of the first is rotated with row i of the second;
// llama.cpp rotates neighbours, so in GGUF the rows are interleaved. Throws Errc::mismatch if the rows cannot be
// divided into pairs for that many heads.
Tensor interleave_halves(const Tensor& tensor, std::uint64_t head_count);
Tensor separate_halves(const Tensor& tensor, std::uint64_t head_count);

// A tensor with a dtype and a shape whose bytes cannot be made, because it is not known how: reading it throws `why`.
Tensor unreadable(Tensor tensor, Error why);
const Error* why_unreadable(const Tensor& tensor);  // null for any other tensor

// The result is in F32. If the weights are F16, the sum is first rounded to F16, as the converter does.
Tensor add_one(const Tensor& tensor);
Tensor subtract_one(const Tensor& tensor);

// Each sum is rounded to the tensor's own dtype.
Tensor add_number(const Tensor& tensor, double number);

// A view as a tensor of its own: the same values in the view's order, in a shape that strides could not give.
Tensor in_order(const Tensor& view, Shape shape);

}  // namespace ballast::names
