#include "kernels/stream.hpp"

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <hwy/targets.h>

namespace ballast::kernels {
namespace {

constexpr std::byte kNotWritten{0xA5};

// Copies from every position in a cache line to every position in a cache line, and checks the bytes beside the output
// too.
void expect_copies(void (*copy)(std::byte*, const std::byte*, std::size_t), std::size_t size) {
  std::mt19937 random(7);
  std::vector<std::byte> in(size + kCacheLine);
  for (auto& b : in) b = static_cast<std::byte>(random());
  for (std::size_t askew = 0; askew <= kCacheLine; ++askew) {
    std::vector<std::byte> out(size + 2 * kCacheLine, kNotWritten), expected = out;
    const std::size_t from = askew * 5 % kCacheLine;
    std::copy_n(in.begin() + static_cast<std::ptrdiff_t>(from), size,
                expected.begin() + static_cast<std::ptrdiff_t>(askew));
    copy(out.data() + askew, in.data() + from, size);
    finish_streaming();
    ASSERT_TRUE(out == expected) << size << " bytes, " << askew << " bytes into the output";
  }
}

class StreamOnTarget : public testing::TestWithParam<std::int64_t> {
 protected:
  void SetUp() override { hwy::SetSupportedTargetsForTest(GetParam()); }
  void TearDown() override { hwy::SetSupportedTargetsForTest(0); }
};

INSTANTIATE_TEST_SUITE_P(Highway, StreamOnTarget, testing::ValuesIn(hwy::SupportedAndGeneratedTargets()),
                         [](const auto& target) { return std::string(hwy::TargetName(target.param)); });

TEST_P(StreamOnTarget, CopiesAnyLengthFromAnywhereToAnywhere) {
  for (std::size_t size = 0; size <= 4 * kCacheLine + 1; ++size) expect_copies(stream_copy, size);
  for (const std::size_t size : {4095U, 4096U, 4097U, 16384U, 40000U}) expect_copies(stream_copy, size);
}

TEST(Stream, CopiesAFewBytesByPiecesThatOverlap) {
  for (std::size_t size = 0; size <= 4 * kCacheLine + 1; ++size) expect_copies(copy_short, size);
}

}  // namespace
}  // namespace ballast::kernels
