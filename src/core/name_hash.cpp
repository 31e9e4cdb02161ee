#include "core/name_hash.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <sys/random.h>

#include <random>

namespace ballast {
namespace {

// Before main(), so that no hash has to ask whether there is a seed; by a call to the system, since random_device looks
// at the processor first, which takes longer than all else here where the processor is a virtual one.
const std::uint64_t kSeed = [] {
  std::uint64_t seed = 0;
  if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) == static_cast<ssize_t>(sizeof seed)) return seed;
  std::random_device random;
  return (std::uint64_t{random()} << 32) | random();
}();

}  // namespace

std::uint64_t hash_name(std::string_view name) noexcept {
  const std::uint64_t hash = XXH3_64bits_withSeed(name.data(), name.size(), kSeed);
  return hash != 0 ? hash : 1;
}

}  // namespace ballast
