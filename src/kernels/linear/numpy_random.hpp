// The numbers of numpy.random.default_rng(seed), to the bit: PCG64, seeded by a SeedSequence.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ballast::kernels {

class NumpyRandom {
 public:
  explicit NumpyRandom(std::uint64_t seed);

  // choice(total, size=count, replace=False); count is not over total.
  std::vector<std::uint64_t> choice(std::uint64_t total, std::uint64_t count);

  // shuffle(values), for fewer than 2^32 values.
  void shuffle(std::span<std::uint64_t> values);

 private:
  struct Wide {  // 128 bits
    std::uint64_t high, low;
  };
  void step();
  std::uint64_t next();
  std::uint32_t next_half();
  std::uint32_t below_or_at(std::uint32_t most);
  std::uint32_t masked(std::uint32_t most);

  Wide state_{0, 0}, increment_{0, 0};
  std::uint32_t half_ = 0;  // the half that the last number left over
  bool has_half_ = false;
};

}  // namespace ballast::kernels
