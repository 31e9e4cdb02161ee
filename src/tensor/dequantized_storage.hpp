// A quantized tensor as the real numbers that it stands for, made as they are read.
#pragma once

#include <cstdint>
#include <span>

#include <ballast/checkpoint.hpp>

namespace ballast {

// Of dtype F32, with the bits that torch's dequantize() gives. The parts are those of the composite, in its order: the
// integers and, per channel, the scales and the zero points. Throws Errc::malformed where they do not go together.
Tensor dequantized_tensor(const Composite& composite, std::span<const Tensor> parts);

// What the scales and zero points take in memory once the values are read.
std::uint64_t channel_memory_bytes(std::span<const Tensor> parts) noexcept;

}  // namespace ballast
