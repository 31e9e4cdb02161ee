// The numbers of torch.Generator().manual_seed(seed) on a CPU, to the bit: what an adapter that keeps only its seed
// was made with.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <vector>

namespace ballast::kernels {

class TorchRandom {
 public:
  // torch, too, takes the lower half of the seed.
  explicit TorchRandom(std::uint64_t seed) : engine_(static_cast<std::uint32_t>(seed)) {}

  // tensor.uniform_(from, to) of an F32 tensor; of a narrower one, these are rounded.
  void uniform(float from, float to, std::span<float> out);

  // tensor.normal_(mean, std) of an F32 tensor. torch's own logarithm and cosine may round otherwise in the last place.
  void normal(float mean, float deviation, std::span<float> out);

  // The first `count` of torch.randperm(total); of more than kMostPermuted, torch takes two numbers for each.
  static constexpr std::uint64_t kMostPermuted = UINT32_MAX / 20;
  std::vector<std::uint64_t> permutation(std::uint64_t total, std::uint64_t count);

 private:
  float uniform_float();

  std::mt19937 engine_;
};

}  // namespace ballast::kernels
