// The command asks the processor itself which of Highway's targets it has (cli/simd_targets.hpp says why).
#include <gtest/gtest.h>
#include <hwy/targets.h>

#if HWY_ARCH_X86_64
#include "../../cli/simd_targets.hpp"

namespace ballast {
namespace {

TEST(SimdTargets, OfTheCommandAreThoseThatHighwayFinds) { EXPECT_EQ(cli::simd_targets(), hwy::SupportedTargets()); }

}  // namespace
}  // namespace ballast
#endif
