#include "core/name_hash.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <random>

namespace ballast {
namespace {

const std::uint64_t kSeed = [] {
  std::random_device random;
  return (std::uint64_t{random()} << 32) | random();
}();

}  // namespace

std::uint64_t hash_name(std::string_view name) noexcept {
  const std::uint64_t hash = XXH3_64bits_withSeed(name.data(), name.size(), kSeed);
  return hash != 0 ? hash : 1;
}

}  // namespace ballast
