#include "kernels/transpose.hpp"

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include "kernels/stream.hpp"

namespace ballast::kernels {
namespace {

constexpr std::byte kUntouched{0xA5};

struct Case {
  std::uint64_t rows, columns, size;
  std::uint64_t out_gap = 0;  // bytes between the rows of the output
  std::int64_t in_gap = 0;    // bytes between the columns of the source
  std::size_t askew = 0;      // bytes from the beginning of a cache line to the output, and twice that to the source
  bool is_backwards = false;  // the last column lies first
};

// Compares with copying one element after the other, in a buffer in which writes into the gaps show as well.
void expect_transposes(const Case& c) {
  const std::uint64_t out_stride = c.columns * c.size + c.out_gap;
  const auto distance = static_cast<std::int64_t>(c.rows * c.size) + c.in_gap;
  std::vector<std::byte> source(c.columns * static_cast<std::uint64_t>(distance) + 2 * c.askew + kCacheLine);
  std::mt19937 random(42);
  for (auto& b : source) b = static_cast<std::byte>(random());
  const std::byte* begin = source.data() + 2 * c.askew;
  if (c.is_backwards && c.columns > 0) begin += static_cast<std::int64_t>(c.columns - 1) * distance;
  const std::int64_t in_stride = c.is_backwards ? -distance : distance;

  const std::size_t buffer_bytes = c.rows * out_stride + c.askew + 2 * kCacheLine;
  // Returns a position that is `askew` bytes behind the beginning of a cache line, whatever the allocator gave.
  const auto place = [&](std::vector<std::byte>& buffer) {
    const auto address = reinterpret_cast<std::uintptr_t>(buffer.data());
    return buffer.data() + (0 - address) % kCacheLine + c.askew;
  };
  for (const bool stream : {false, true}) {
    std::vector<std::byte> out(buffer_bytes, kUntouched), expected(buffer_bytes, kUntouched);
    transpose({place(out), out_stride}, {begin, in_stride}, c.rows, c.columns, c.size, stream);
    finish_streaming();
    for (std::uint64_t row = 0; row < c.rows; ++row) {
      for (std::uint64_t column = 0; column < c.columns; ++column) {
        std::memcpy(place(expected) + row * out_stride + column * c.size,
                    begin + static_cast<std::int64_t>(column) * in_stride + row * c.size, c.size);
      }
    }
    const std::size_t end = c.rows * out_stride + kCacheLine / 2;
    ASSERT_EQ(std::memcmp(place(out), place(expected), end), 0)
        << c.rows << " x " << c.columns << " of " << c.size << " bytes, gaps " << c.out_gap << " and " << c.in_gap
        << ", askew " << c.askew << (c.is_backwards ? ", backwards" : "") << (stream ? ", streamed" : "");
    ASSERT_EQ(std::count(out.data(), place(out), kUntouched), place(out) - out.data()) << "something before the output";
  }
}

constexpr std::uint64_t kSizes[] = {1, 2, 4, 8, 16};

TEST(Transpose, WritesNothingIfThereIsNothing) {
  for (const std::uint64_t size : {1U, 2U, 4U, 8U, 16U, 24U, 256U}) {
    expect_transposes({0, 5, size});
    expect_transposes({5, 0, size});
    expect_transposes({0, 0, size});
  }
}

TEST(Transpose, TakesEverySizeAroundTheEdgesOfItsTiles) {
  for (const std::uint64_t size : kSizes) {
    const std::uint64_t height = kTileRowBytes / size;
    for (const std::uint64_t rows : {std::uint64_t{1}, std::uint64_t{13}, height - 1, height, height + 1}) {
      for (const std::uint64_t columns : {std::uint64_t{1}, std::uint64_t{17}, kTileColumns - 1, kTileColumns,
                                          kTileColumns + 1, 2 * kTileColumns + 3}) {
        expect_transposes({rows, columns, size});
      }
    }
  }
}

TEST(Transpose, WritesToAnyAddress) {
  for (const std::uint64_t size : kSizes) {
    for (std::size_t askew = 0; askew < kCacheLine; askew += askew < 18 ? 1 : 15) {
      expect_transposes({37, 2 * kTileColumns + 11, size, 0, 0, askew});
      // All rows begin at the same position in a cache line.
      const std::uint64_t columns = 3 * kTileColumns;
      expect_transposes({kTileRowBytes / size + 5, columns, size, 0, 64, askew});
    }
  }
}

// The target only decides how finished cache lines are streamed.
class TransposeOnTarget : public testing::TestWithParam<std::int64_t> {
 protected:
  void SetUp() override { hwy::SetSupportedTargetsForTest(GetParam()); }
  void TearDown() override { hwy::SetSupportedTargetsForTest(0); }
};

INSTANTIATE_TEST_SUITE_P(Highway, TransposeOnTarget, testing::ValuesIn(hwy::SupportedAndGeneratedTargets()),
                         [](const auto& target) { return std::string(hwy::TargetName(target.param)); });

TEST_P(TransposeOnTarget, KeepsToItsRowsAndReadsItsColumnsInEitherDirection) {
  for (const std::uint64_t size : {1U, 2U, 3U, 4U, 8U, 16U, 18U, 64U, 144U, 256U}) {
    for (const bool is_backwards : {false, true}) {
      expect_transposes({61, 131, size, 7, 3, 5, is_backwards});
      expect_transposes({67, 263, size, 64, 64, 16, is_backwards});
    }
  }
}

TEST(Transpose, JoinsLargerElementsToPiecesOfRows) {
  for (const std::uint64_t size : {3U, 17U, 63U, 65U, 128U, 129U, 341U, 512U, 1023U, 1024U, 1025U, 4096U, 70'000U}) {
    for (const std::uint64_t columns : {1U, 2U, 7U, 8U, 9U, 17U}) expect_transposes({3, columns, size, 0, 0, 9});
  }
  expect_transposes({65536 / 256 + 3, 11, 256, 0, 0, 16});
}

}  // namespace
}  // namespace ballast::kernels
