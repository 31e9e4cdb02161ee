#include "kernels/linear/numpy_random.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <unordered_set>
#include <utility>

namespace ballast::kernels {
namespace {

// SeedSequence: four words of entropy, mixed with each other, and then drawn from in turn.
constexpr std::uint32_t kShift = 16;

std::uint32_t hashed(std::uint32_t value, std::uint32_t& constant, std::uint32_t multiplier) {
  value ^= constant;
  constant *= multiplier;
  value *= constant;
  return value ^ (value >> kShift);
}

std::array<std::uint32_t, 4> entropy_pool(std::uint64_t seed) {
  constexpr std::uint32_t kMultiplier = 0x931e8875;
  std::uint32_t constant = 0x43b0d7e5;
  std::array<std::uint32_t, 4> pool{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32), 0, 0};
  for (std::uint32_t& word : pool) word = hashed(word, constant, kMultiplier);
  for (std::size_t from = 0; from < pool.size(); ++from) {
    for (std::size_t to = 0; to < pool.size(); ++to) {
      if (from == to) continue;
      const std::uint32_t mixed = 0xca01f9ddU * pool[to] - 0x4973f715U * hashed(pool[from], constant, kMultiplier);
      pool[to] = mixed ^ (mixed >> kShift);
    }
  }
  return pool;
}

std::array<std::uint64_t, 4> initial_state(std::uint64_t seed) {
  const auto pool = entropy_pool(seed);
  std::uint32_t constant = 0x8b51f9dd;
  std::array<std::uint32_t, 8> words{};
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = hashed(pool[i % pool.size()], constant, 0x58f38ded);
  std::array<std::uint64_t, 4> state{};
  for (std::size_t i = 0; i < state.size(); ++i) state[i] = words[2 * i] | std::uint64_t{words[2 * i + 1]} << 32;
  return state;
}

using Int128 = unsigned __int128;
constexpr Int128 kMultiplier = Int128{0x2360ed051fc65da4} << 64 | 0x4385df649fccf645;

}  // namespace

NumpyRandom::NumpyRandom(std::uint64_t seed) {
  const auto words = initial_state(seed);
  const Int128 increment = (Int128{words[2]} << 64 | words[3]) << 1 | 1;
  increment_ = {static_cast<std::uint64_t>(increment >> 64), static_cast<std::uint64_t>(increment)};
  step();
  const Int128 state = (Int128{state_.high} << 64 | state_.low) + (Int128{words[0]} << 64 | words[1]);
  state_ = {static_cast<std::uint64_t>(state >> 64), static_cast<std::uint64_t>(state)};
  step();
}

void NumpyRandom::step() {
  const Int128 state =
      (Int128{state_.high} << 64 | state_.low) * kMultiplier + (Int128{increment_.high} << 64 | increment_.low);
  state_ = {static_cast<std::uint64_t>(state >> 64), static_cast<std::uint64_t>(state)};
}

std::uint64_t NumpyRandom::next() {
  step();
  return std::rotr(state_.high ^ state_.low, static_cast<int>(state_.high >> 58));
}

std::uint32_t NumpyRandom::next_half() {
  if (std::exchange(has_half_, !has_half_)) return half_;
  const std::uint64_t both = next();
  half_ = static_cast<std::uint32_t>(both >> 32);
  return static_cast<std::uint32_t>(both);
}

// Lemire's method: the upper half of a product; a number that would come up too often is drawn again.
std::uint32_t NumpyRandom::below_or_at(std::uint32_t most) {
  if (most == 0) return 0;
  if (most == UINT32_MAX) return next_half();
  const std::uint32_t count = most + 1, threshold = (UINT32_MAX - most) % count;
  std::uint64_t product = std::uint64_t{next_half()} * count;
  while (static_cast<std::uint32_t>(product) < threshold) product = std::uint64_t{next_half()} * count;
  return static_cast<std::uint32_t>(product >> 32);
}

// The older method, which shuffle() still uses: draws as many bits as `most` has until the number is not over `most`.
std::uint32_t NumpyRandom::masked(std::uint32_t most) {
  if (most == 0) return 0;
  const std::uint32_t mask = UINT32_MAX >> std::countl_zero(most);
  std::uint32_t value = 0;
  do {
    value = next_half() & mask;
  } while (value > most);
  return value;
}

std::vector<std::uint64_t> NumpyRandom::choice(std::uint64_t total, std::uint64_t count) {
  std::vector<std::uint64_t> chosen;
  if (total > 10000 && count > total / 50) {  // the end of a shuffled range
    chosen.resize(total);
    std::iota(chosen.begin(), chosen.end(), std::uint64_t{0});
    for (std::uint64_t i = total - 1; i >= std::max<std::uint64_t>(total - count, 1); --i)
      std::swap(chosen[i], chosen[below_or_at(static_cast<std::uint32_t>(i))]);
    chosen.erase(chosen.begin(), chosen.end() - static_cast<std::ptrdiff_t>(count));
    return chosen;
  }
  std::unordered_set<std::uint64_t> taken;  // Floyd's method
  for (std::uint64_t i = total - count; i < total; ++i) {
    const std::uint64_t drawn = below_or_at(static_cast<std::uint32_t>(i));
    chosen.push_back(taken.insert(drawn).second ? drawn : i);
    taken.insert(i == chosen.back() ? i : drawn);
  }
  for (std::uint64_t i = count; i-- > 1;) std::swap(chosen[i], chosen[below_or_at(static_cast<std::uint32_t>(i))]);
  return chosen;
}

void NumpyRandom::shuffle(std::span<std::uint64_t> values) {
  for (std::uint64_t i = values.size(); i-- > 1;) std::swap(values[i], values[masked(static_cast<std::uint32_t>(i))]);
}

}  // namespace ballast::kernels
