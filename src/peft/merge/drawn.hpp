// Values that PEFT draws from a seed and does not save, drawn again to the bit. (FourierFT, WaveFT and SHiRA draw
// permutations: see kernels/torch_random.)
#pragma once

#include <cstdint>
#include <vector>

#include "peft/matrix.hpp"

namespace ballast::peft {

// The largest numbers of outputs and inputs of the modules that an adapter changes: its shared matrices have these.
struct Largest {
  std::uint64_t out = 0, in = 0;
};

// VeRA's: [a_rows, in] and [out, rank].
struct DrawnProjections {
  Matrix a, b;
};
DrawnProjections draw_projections(std::uint64_t seed, std::uint64_t a_rows, std::uint64_t rank, Largest largest);

// RandLoRA's bases: A [rank, 1, smaller], B [larger, bases, rank]; smaller and larger are the two of inputs and
// outputs.
struct RandomBases {
  std::vector<float> a, b;
  std::uint64_t smaller = 0, bases = 0;  // a module may use fewer
};

// As PEFT draws them if it can use BF16: everywhere but on processors that nobody trains on.
RandomBases draw_bases(std::uint64_t seed, std::uint64_t rank, Largest largest);

// UniLoRA's indices: for each element of all matrices an element of a vector, and each of those as often as the others.
// The matrices are A [rank, in] and B [out, rank] of each module, in the order of the model.
std::vector<std::uint64_t> draw_indices(std::uint64_t seed, std::uint64_t elements, std::uint64_t length);

}  // namespace ballast::peft
