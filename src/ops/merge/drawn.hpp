// What PEFT draws from a seed and does not save, drawn again to the bit. (FourierFT, WaveFT and SHiRA draw
// permutations, see kernels/torch_random.)
#pragma once

#include <cstdint>
#include <vector>

#include "ops/merge/matrix.hpp"

namespace ballast::merging {

// The largest outputs and inputs of the modules that an adapter changes: what its shared matrices were made for.
struct Largest {
  std::uint64_t out = 0, in = 0;
};

// VeRA's: [a_rows, in] and [out, rank].
struct DrawnProjections {
  Matrix a, b;
};
DrawnProjections draw_projections(std::uint64_t seed, std::uint64_t a_rows, std::uint64_t rank, Largest largest);

// RandLoRA's bases: A [rank, 1, smaller], B [larger, bases, rank], smaller and larger being of inputs and outputs.
struct RandomBases {
  std::vector<float> a, b;
  std::uint64_t smaller = 0, bases = 0;  // of these, a module may use fewer
};

// As PEFT draws them where it can use BF16, which is everywhere but on processors that nobody trains on.
RandomBases draw_bases(std::uint64_t seed, std::uint64_t rank, Largest largest);

// UniLoRA's: for each element of all matrices the one of a vector that it is, each as often as the others. The matrices
// are, of each module in the order of the model, A [rank, in] and B [out, rank].
std::vector<std::uint64_t> draw_indices(std::uint64_t seed, std::uint64_t elements, std::uint64_t length);

}  // namespace ballast::merging
