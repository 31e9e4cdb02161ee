// A quantized tensor as the real numbers that it stands for, made as they are read.
#pragma once

#include <cstdint>
#include <span>

#include <ballast/checkpoint.hpp>

namespace ballast {

// A tensor of dtype F32, with the bits that torch's dequantize() gives. The parts are those of the composite, in its
// order: the integers and, per channel, the scales and the zero points. Throws Errc::malformed if they do not fit
// together.
Tensor dequantized_tensor(const Composite& composite, std::span<const Tensor> parts);

// The memory that the scales and zero points take once the values are read.
std::uint64_t channel_memory_bytes(std::span<const Tensor> parts) noexcept;

}  // namespace ballast
