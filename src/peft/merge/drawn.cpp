#include "peft/merge/drawn.hpp"

#include <algorithm>
#include <cmath>
#include <span>

#include "kernels/linear/numpy_random.hpp"
#include "kernels/linear/torch_random.hpp"

namespace ballast::peft {
namespace {

// nn.init.kaiming_uniform_ of a matrix: bound = gain * sqrt(3 / fan_in).
void kaiming_uniform(kernels::TorchRandom& random, double gain, double fan, std::span<float> out) {
  const auto bound = static_cast<float>(std::sqrt(3.0) * (gain / std::sqrt(fan)));
  random.uniform(-bound, bound, out);
}

// Divides the values by their deviation. torch computes that of a BF16 tensor in more digits, and then rounds it.
void normalize(std::span<float> values) {
  double sum = 0, squares = 0;
  for (const float value : values) sum += value;
  const double mean = sum / static_cast<double>(values.size());
  for (const float value : values) squares += (value - mean) * (value - mean);
  auto deviation = static_cast<float>(std::sqrt(squares / static_cast<double>(values.size() - 1)));
  round_through(DType::bf16, {&deviation, 1});
  for (float& value : values) value /= deviation;
  round_through(DType::bf16, values);
}

}  // namespace

DrawnProjections draw_projections(std::uint64_t seed, std::uint64_t a_rows, std::uint64_t rank, Largest largest) {
  kernels::TorchRandom random(seed);
  DrawnProjections drawn{Matrix({a_rows, largest.in}), Matrix({largest.out, rank})};
  kaiming_uniform(random, std::sqrt(2.0), static_cast<double>(largest.in), drawn.a.values());
  kaiming_uniform(random, std::sqrt(2.0), static_cast<double>(rank), drawn.b.values());
  return drawn;
}

RandomBases draw_bases(std::uint64_t seed, std::uint64_t rank, Largest largest) {
  RandomBases result;
  result.smaller = std::min(largest.out, largest.in);
  result.bases = (result.smaller + rank - 1) / rank;
  const std::uint64_t larger = std::max(largest.out, largest.in);
  kernels::TorchRandom random(seed);
  const double gain = std::sqrt(1.0 / 3.0);  // of a leaky ReLU of slope sqrt(5)
  result.a.resize(rank * result.smaller);
  kaiming_uniform(random, gain, static_cast<double>(result.smaller), result.a);
  round_through(DType::bf16, result.a);
  result.b.resize(larger * result.bases * rank);
  std::vector<float> base(larger * rank);
  for (std::uint64_t n = 0; n < result.bases; ++n) {
    kaiming_uniform(random, gain, static_cast<double>(rank), base);
    for (std::uint64_t i = 0; i < larger; ++i)
      std::copy_n(&base[i * rank], rank, &result.b[(i * result.bases + n) * rank]);
  }
  round_through(DType::bf16, result.b);
  normalize(result.a);
  normalize(result.b);
  return result;
}

std::vector<std::uint64_t> draw_indices(std::uint64_t seed, std::uint64_t elements, std::uint64_t length) {
  kernels::NumpyRandom random(seed);
  std::vector<std::uint64_t> result;
  result.reserve(elements);
  const std::uint64_t each = elements / length, left = elements % length;
  for (std::uint64_t i = 0; i < length; ++i) result.insert(result.end(), each, i);
  if (left != 0) {
    const auto extra = random.choice(length, left);
    result.insert(result.end(), extra.begin(), extra.end());
  }
  random.shuffle(result);
  return result;
}

}  // namespace ballast::peft
