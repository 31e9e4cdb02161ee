// The two functions of libhwy.so that the kernels call. Debian has no libhwy.a, and loading libhwy.so takes 3 ms,
// because it measures a clock before main() begins.
#include "simd_targets.hpp"

namespace hwy {

std::int64_t SupportedTargets() {
  static const std::int64_t targets = ballast::cli::simd_targets();
  return targets;
}

ChosenTarget& GetChosenTarget() {
  static ChosenTarget chosen;
  return chosen;
}

}  // namespace hwy
