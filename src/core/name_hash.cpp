#include "core/name_hash.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <sys/random.h>

#include <random>

namespace ballast {
namespace {

// The seed is made before main(), so that no hash has to check whether there is one. It comes from a system call,
// because random_device looks at the processor first, and on a virtual processor that takes longer than everything else
// here.
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
