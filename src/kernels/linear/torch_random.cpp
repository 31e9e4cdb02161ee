#include "kernels/linear/torch_random.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <unordered_map>
#include <utility>

namespace ballast::kernels {
namespace {

constexpr std::size_t kVector = 16;  // normal numbers are made 16 at a time

// The Box-Muller transform of eight numbers and the eight after them.
void to_normal(std::span<float, kVector> values, float mean, float deviation) {
  for (std::size_t i = 0; i < kVector / 2; ++i) {
    const float u1 = 1 - values[i], u2 = values[i + kVector / 2];
    const float radius = std::sqrt(-2 * std::log(u1)), theta = 2.0F * std::numbers::pi_v<float> * u2;
    values[i] = radius * std::cos(theta) * deviation + mean;
    values[i + kVector / 2] = radius * std::sin(theta) * deviation + mean;
  }
}

}  // namespace

float TorchRandom::uniform_float() { return static_cast<float>(engine_() & 0xFFFFFF) * (1.0F / (1 << 24)); }

void TorchRandom::uniform(float from, float to, std::span<float> out) {
  for (float& value : out) value = std::fma(uniform_float(), to - from, from);  // fused, because torch is compiled so
}

// Fewer than 16 numbers are made one by one, in doubles, two from each draw. For more, all uniform numbers are drawn
// first; if their number is not a multiple of 16, the last 16 are drawn again.
void TorchRandom::normal(float mean, float deviation, std::span<float> out) {
  if (out.size() >= kVector) {
    for (float& value : out) value = uniform_float();
    for (std::size_t i = 0; i + kVector <= out.size(); i += kVector)
      to_normal(out.subspan(i).first<kVector>(), mean, deviation);
    if (out.size() % kVector == 0) return;
    const auto rest = out.last<kVector>();
    for (float& value : rest) value = uniform_float();
    return to_normal(rest, mean, deviation);
  }
  const auto uniform_double = [&] {
    const std::uint64_t high = engine_(), low = engine_();
    return static_cast<double>(((high << 32) | low) & ((std::uint64_t{1} << 53) - 1)) * 0x1p-53;
  };
  bool has_next = false;
  double next = 0;
  for (float& value : out) {
    if (std::exchange(has_next, !has_next)) {
      value = static_cast<float>(next * deviation + mean);
      continue;
    }
    const double u1 = uniform_double(), u2 = uniform_double();
    const double radius = std::sqrt(-2 * std::log1p(-u2)), theta = 2 * std::numbers::pi * u1;
    next = radius * std::sin(theta);
    value = static_cast<float>(radius * std::cos(theta) * deviation + mean);
  }
}

// An element of the permutation does not change after its own swap, so the rest of the shuffle can be left out. Only
// the elements that swaps have moved are remembered.
std::vector<std::uint64_t> TorchRandom::permutation(std::uint64_t total, std::uint64_t count) {
  std::unordered_map<std::uint64_t, std::uint64_t> moved;
  const auto at = [&](std::uint64_t i) {
    const auto entry = moved.find(i);
    return entry == moved.end() ? i : entry->second;
  };
  std::vector<std::uint64_t> shuffled;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t other = i + 1 < total ? i + engine_() % (total - i) : i;
    const std::uint64_t here = at(i);
    shuffled.push_back(at(other));
    moved[other] = here;
  }
  return shuffled;
}

}  // namespace ballast::kernels
