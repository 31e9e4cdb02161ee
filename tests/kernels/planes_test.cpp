#include "kernels/planes.hpp"

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <cstdint>
#include <random>
#include <vector>

namespace ballast::kernels {
namespace {

using Bytes = std::vector<std::byte>;

constexpr std::size_t kElementSizes[] = {1, 2, 3, 4, 5, 7, 8, 12, 16, 18};
// Counts around the sizes of the vectors and tiles of every target, and none at all.
constexpr std::size_t kCounts[] = {0, 1, 2, 15, 16, 17, 63, 64, 65, 511, 512, 513, 1000, 1023, 1024, 1025, 4096};

Bytes random_bytes(std::size_t size) {
  std::mt19937 random(static_cast<unsigned>(size));
  Bytes bytes(size);
  for (std::byte& b : bytes) b = static_cast<std::byte>(random());
  return bytes;
}

Bytes split_plainly(const Bytes& elements, std::size_t element_bytes) {
  Bytes planes;
  for (std::size_t k = 0; k < element_bytes; ++k) {
    for (std::size_t i = k; i < elements.size(); i += element_bytes) planes.push_back(elements[i]);
  }
  return planes;
}

class PlanesOnTarget : public testing::TestWithParam<std::int64_t> {
 protected:
  void SetUp() override { hwy::SetSupportedTargetsForTest(GetParam()); }
  void TearDown() override { hwy::SetSupportedTargetsForTest(0); }
};

INSTANTIATE_TEST_SUITE_P(Highway, PlanesOnTarget, testing::ValuesIn(hwy::SupportedAndGeneratedTargets()),
                         [](const auto& target) { return std::string(hwy::TargetName(target.param)); });

TEST_P(PlanesOnTarget, SplitAndJoinElementsOfAnySizeAndNumber) {
  for (const std::size_t size : kElementSizes) {
    for (const std::size_t count : kCounts) {
      const Bytes elements = random_bytes(size * count);
      Bytes planes(elements.size()), joined(elements.size());
      split_planes(elements, size, planes);
      EXPECT_EQ(planes, split_plainly(elements, size)) << count << " of " << size << " bytes";
      join_planes(planes, size, joined);
      EXPECT_EQ(joined, elements) << count << " of " << size << " bytes";
    }
  }
}

TEST_P(PlanesOnTarget, TakeAnyAddressAndTouchNothingBeside) {
  for (const std::size_t size : kElementSizes) {
    const std::size_t bytes = size * 1031;
    const Bytes elements = random_bytes(bytes + 1);
    Bytes planes(bytes + 5, std::byte{0xA5}), joined(bytes + 9, std::byte{0xA5});
    split_planes(std::span(elements).subspan(1), size, std::span(planes).subspan(3, bytes));
    join_planes(std::span(planes).subspan(3, bytes), size, std::span(joined).subspan(7, bytes));
    EXPECT_TRUE(std::equal(elements.begin() + 1, elements.end(), joined.begin() + 7)) << size;
    for (const std::size_t i : {std::size_t{0}, std::size_t{2}, bytes + 3, bytes + 4})
      EXPECT_EQ(planes[i], std::byte{0xA5});
    for (const std::size_t i : {std::size_t{6}, bytes + 7, bytes + 8}) EXPECT_EQ(joined[i], std::byte{0xA5});
  }
}

TEST_P(PlanesOnTarget, RotateElementsByABitAndBack) {
  for (const std::size_t size : kElementSizes) {
    for (const std::size_t count : kCounts) {
      const Bytes elements = random_bytes(size * count);
      Bytes rotated = elements;
      for (std::size_t i = 0; i < rotated.size(); ++i) {
        const std::size_t below = i % size == 0 ? i + size - 1 : i - 1;
        rotated[i] = elements[i] << 1 | elements[below] >> 7;
      }
      Bytes planes = split_plainly(elements, size);
      rotate_left_in_planes(planes, size);
      EXPECT_EQ(planes, split_plainly(rotated, size)) << count << " of " << size << " bytes";
      rotate_right_in_planes(planes, size);
      EXPECT_EQ(planes, split_plainly(elements, size)) << count << " of " << size << " bytes";
    }
  }
}

}  // namespace
}  // namespace ballast::kernels
