// The numbers that torch and NumPy draw from a seed.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "kernels/linear/numpy_random.hpp"
#include "kernels/linear/torch_random.hpp"

namespace ballast::kernels {
namespace {

// torch.empty(3).uniform_(-b, b, generator=torch.Generator().manual_seed(7)), b = 0.6123724579811096
TEST(TorchRandom, DrawsUniformNumbers) {
  std::vector<float> values(3);
  TorchRandom(7).uniform(-0.6123724579811096F, 0.6123724579811096F, values);
  EXPECT_EQ(values, (std::vector<float>{0.04277120530605316F, -0.3688892722129822F, 0.19499371945858002F}));
}

TEST(TorchRandom, PermutesAllNumbersAndBeginsAlikeForFewer) {
  const auto all = TorchRandom(777).permutation(100, 100), some = TorchRandom(777).permutation(100, 10);
  EXPECT_EQ(std::vector(all.begin(), all.begin() + 10), some);
  std::vector<bool> seen(100);
  for (const std::uint64_t i : all) seen.at(i) = true;
  EXPECT_EQ(std::ranges::count(seen, true), 100);
}

TEST(TorchRandom, DrawsTheSameNormalNumbersHoweverManyFollowInWholeVectors) {
  std::vector<float> few(16), many(48);
  TorchRandom(1).normal(0, 1, many);
  TorchRandom(1).normal(0, 1, few);
  // All uniform numbers are drawn first, so the first vector of 16 is the same.
  EXPECT_EQ(few, std::vector<float>(many.begin(), many.begin() + 16));
}

// numpy.random.default_rng(42), as in the reference case extra_unilora: the beginning of repeat(arange(50), 4), then 24
// of choice(50, 24, replace=False), all shuffled.
TEST(NumpyRandom, ChoosesAndShuffles) {
  NumpyRandom random(42);
  std::vector<std::uint64_t> data;
  for (std::uint64_t i = 0; i < 50; ++i) data.insert(data.end(), 4, i);
  const auto extra = random.choice(50, 24);
  data.insert(data.end(), extra.begin(), extra.end());
  random.shuffle(data);
  data.resize(10);
  EXPECT_EQ(data, (std::vector<std::uint64_t>{6, 18, 38, 24, 9, 11, 34, 3, 22, 41}));
}

}  // namespace
}  // namespace ballast::kernels
