#include "kernels/gather.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace ballast::kernels {
namespace {

// A view of a buffer of its own, whose bytes all show where they came from.
struct View {
  std::vector<std::uint64_t> shape;
  std::vector<std::int64_t> strides;  // bytes
  std::uint64_t size = 1;
  std::vector<std::byte> buffer{};
  std::int64_t origin = 0;

  View(std::vector<std::uint64_t> s, std::vector<std::int64_t> st, std::uint64_t element_bytes)
      : shape(std::move(s)), strides(std::move(st)), size(element_bytes) {
    std::int64_t low = 0, high = 0;
    for (std::size_t i = 0; i < shape.size(); ++i) {
      const std::int64_t reach = static_cast<std::int64_t>(shape[i] == 0 ? 0 : shape[i] - 1) * strides[i];
      (reach < 0 ? low : high) += reach;
    }
    origin = -low;
    buffer.resize(static_cast<std::size_t>(high - low) + size);
    std::mt19937 random(42);
    for (auto& b : buffer) b = static_cast<std::byte>(random());
  }

  const std::byte* base() const { return buffer.data() + origin; }

  std::uint64_t numel() const {
    return std::accumulate(shape.begin(), shape.end(), std::uint64_t{1}, std::multiplies<>());
  }

  std::vector<std::byte> gathered(std::uint64_t first, std::uint64_t count) const {
    std::vector<std::byte> out(count * size);
    gather(out, base(), shape, strides, first, size);
    return out;
  }

  // Gathers one element after the other.
  std::vector<std::byte> expected(std::uint64_t first, std::uint64_t count) const {
    std::vector<std::byte> out(count * size);
    for (std::uint64_t k = 0; k < count; ++k) {
      std::uint64_t rest = first + k;
      const std::byte* from = base();
      for (std::size_t i = shape.size(); i-- > 0; rest /= shape[i]) {
        from += static_cast<std::int64_t>(rest % shape[i]) * strides[i];
      }
      std::memcpy(out.data() + k * size, from, size);
    }
    return out;
  }
};

void expect_gathers(const View& view, std::uint64_t first, std::uint64_t count) {
  EXPECT_TRUE(view.gathered(first, count) == view.expected(first, count))
      << "shape " << testing::PrintToString(view.shape) << " strides " << testing::PrintToString(view.strides)
      << " size " << view.size << " elements " << first << " + " << count;
}

void expect_gathers(const View& view) { expect_gathers(view, 0, view.numel()); }

TEST(Gather, CopiesWhatIsContiguous) {
  expect_gathers({{}, {}, 4});
  expect_gathers({{5}, {4}, 4});
  expect_gathers({{2, 3, 4}, {24, 8, 2}, 2});
}

TEST(Gather, GivesNothingForAnEmptyView) {
  EXPECT_TRUE(View({0, 3}, {12, 4}, 4).gathered(0, 0).empty());
  EXPECT_TRUE(View({3}, {4}, 4).gathered(3, 0).empty());
}

TEST(Gather, RepeatsExpandsReversesAndSteps) {
  expect_gathers({{4, 5}, {0, 4}, 4});
  expect_gathers({{4, 5}, {4, 0}, 4});
  expect_gathers({{7}, {-8}, 8});
  expect_gathers({{3, 5}, {-40, 8}, 4});
  expect_gathers({{3, 5}, {2, -6}, 2});
}

TEST(Gather, TakesRanksFarAboveThoseThatItKeepsInPlace) {
  std::vector<std::uint64_t> shape(300, 1);
  std::vector<std::int64_t> strides(300, 12345);
  for (std::size_t i = 0; i < 12; ++i) {
    shape[i * 25] = 2;
    strides[i * 25] = std::int64_t{4} << i;  // innermost last, so that nothing coalesces
  }
  expect_gathers({shape, strides, 4});

  // A view of 63 dimensions of two, all repeated: only a range of it can be asked for.
  expect_gathers({std::vector<std::uint64_t>(63, 2), std::vector<std::int64_t>(63, 0), 2}, 1'000'000'007, 100);
}

TEST(Gather, TransposesEveryElementSizeAroundTheEdgesOfItsTiles) {
  for (const std::uint64_t size : {1U, 2U, 3U, 4U, 8U, 12U, 16U, 18U, 144U}) {
    for (const std::uint64_t rows : {1U, 2U, 15U, 16U, 17U, 64U, 129U}) {
      for (const std::uint64_t columns : {1U, 2U, 7U, 255U, 256U, 257U, 520U}) {
        expect_gathers(
            {{rows, columns}, {static_cast<std::int64_t>(size), static_cast<std::int64_t>(rows * size)}, size});
      }
    }
  }
}

TEST(Gather, TransposesUnderOtherDimensionsFromAnywhereToAnywhere) {
  // [a, b, c, d] of a tensor stored as [a, d, c, b], so that memory is contiguous along b.
  const View view({3, 20, 5, 30}, {20 * 5 * 30 * 2, 2, 20 * 2, 20 * 5 * 2}, 2);
  std::mt19937_64 random(5);
  for (int i = 0; i < 300; ++i) {
    const std::uint64_t first = random() % view.numel();
    expect_gathers(view, first, random() % (view.numel() - first + 1));
  }
}

TEST(Gather, AgreesWithOneElementAfterTheOtherOnRandomViews) {
  std::mt19937_64 random(11);
  const std::uint64_t sizes[] = {1, 2, 4, 8, 16, 3, 6, 18, 34, 144};
  for (int round = 0; round < 3000; ++round) {
    const std::uint64_t size = sizes[random() % std::size(sizes)];
    const std::size_t rank = random() % 6;
    std::vector<std::uint64_t> shape(rank);
    for (auto& dim : shape) dim = 1 + random() % (random() % 4 == 0 ? 40 : 6);

    // The view is contiguous, then permuted, with some dimensions repeated, reversed, stepped over or pulled apart.
    std::vector<std::size_t> order(rank);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    std::vector<std::int64_t> strides(rank);
    auto stride = static_cast<std::int64_t>(size);
    for (const std::size_t i : order) {
      strides[i] = stride;
      stride *= static_cast<std::int64_t>(shape[i]);
      const std::uint64_t twist = random() % 10;
      if (twist == 0) strides[i] = 0;
      if (twist == 1) strides[i] = -strides[i];
      if (twist == 2) stride += static_cast<std::int64_t>(random() % 9);
    }
    if (stride > 4'000'000) continue;

    const View view(shape, strides, size);
    expect_gathers(view);
    const std::uint64_t first = random() % view.numel();
    expect_gathers(view, first, random() % (view.numel() - first + 1));
  }
}

// Large outputs are written around the cache.
TEST(Gather, GivesTheSameBytesWhenItStreams) {
  constexpr std::uint64_t kRows = 2048, kColumns = kStreamGatherFromBytes / kRows;
  for (const View& view :
       {View({kRows, kColumns}, {2, kRows * 2}, 2), View({kRows + 3, kColumns}, {2, (kRows + 3) * 2}, 2),
        View({kRows, 4, kColumns / 4}, {kColumns / 4, kRows * kColumns / 4, 1}, 1), View({kRows * kColumns}, {1}, 1)}) {
    const std::uint64_t count = view.numel();
    const std::vector<std::byte> whole = view.gathered(0, count);
    constexpr std::uint64_t kPart = 100'003;
    for (std::uint64_t first = 0; first < count; first += kPart) {
      const std::vector<std::byte> part = view.gathered(first, std::min(kPart, count - first));
      ASSERT_EQ(std::memcmp(part.data(), whole.data() + first * view.size, part.size()), 0) << "near element " << first;
    }
    expect_gathers(view, count / 2, 1000);
  }
}

TEST(Gather, WritesNothingBesideItsOutput) {
  const View view({100, 300}, {2, 200}, 2);
  std::vector<std::byte> out(view.numel() * 2 + 2, std::byte{0xA5});
  gather(std::span(out).subspan(1, view.numel() * 2), view.base(), view.shape, view.strides, 0, 2);
  EXPECT_EQ(out.front(), std::byte{0xA5});
  EXPECT_EQ(out.back(), std::byte{0xA5});
}

}  // namespace
}  // namespace ballast::kernels
