// The numbers of torch.Generator().manual_seed(seed) on a CPU, to the bit. An adapter that stores only its seed was
// made with these numbers.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <vector>

namespace ballast::kernels {

class TorchRandom {
 public:
  // Only the lower half of the seed is used, as in torch.
  explicit TorchRandom(std::uint64_t seed) : engine_(static_cast<std::uint32_t>(seed)) {}

  // tensor.uniform_(from, to) of an F32 tensor; for a narrower tensor, torch rounds these numbers.
  void uniform(float from, float to, std::span<float> out);

  // tensor.normal_(mean, std) of an F32 tensor. torch's own logarithm and cosine may round the last bit differently.
  void normal(float mean, float deviation, std::span<float> out);

  // The first `count` of torch.randperm(total). `total` is below kMostPermuted: from there on, torch draws two numbers
  // for each element.
  static constexpr std::uint64_t kMostPermuted = UINT32_MAX / 20;
  std::vector<std::uint64_t> permutation(std::uint64_t total, std::uint64_t count);

 private:
  float uniform_float();

  std::mt19937 engine_;
};

}  // namespace ballast::kernels
