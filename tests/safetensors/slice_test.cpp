// Slices of tensors in a file, compared with the simplest way to write down Python's rules.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <vector>

#include <ballast/open.hpp>

#include "builders/safetensors_file.hpp"
#include "support/expect_error.hpp"
#include "support/tensor_values.hpp"

namespace ballast {
namespace {

using test::SafetensorsFile;
using test::text_of;
using Integer = std::optional<std::int64_t>;

// PySlice_AdjustIndices, as its documentation describes it: returns the indices that range(*slice(a, b,
// step).indices(size)) visits.
std::vector<std::int64_t> python_range(Integer start, Integer stop, std::int64_t step, std::int64_t size) {
  const std::int64_t lowest = step < 0 ? -1 : 0, highest = step < 0 ? size - 1 : size;
  const auto adjust = [&](Integer i, std::int64_t missing) {
    if (!i) return missing;
    if (*i < 0) return *i + size < lowest ? lowest : *i + size;
    return *i > highest ? highest : *i;
  };
  std::vector<std::int64_t> visited;
  const std::int64_t first = adjust(start, step < 0 ? size - 1 : 0), last = adjust(stop, step < 0 ? -1 : size);
  for (std::int64_t i = first; step < 0 ? i > last : i < last; i += step) visited.push_back(i);
  return visited;
}

struct Axis {
  std::vector<std::int64_t> picked;
  bool dropped = false;  // an integer drops its axis
};

// Copies element after element.
std::string python_slice(const std::string& bytes, const std::vector<std::uint64_t>& shape, std::size_t element_bytes,
                         const std::vector<Axis>& axes) {
  std::string result;
  std::vector<std::size_t> at(shape.size(), 0);
  for (const Axis& axis : axes) {
    if (axis.picked.empty()) return result;
  }
  for (;;) {
    std::size_t flat = 0;
    for (std::size_t i = 0; i < shape.size(); ++i)
      flat = flat * shape[i] + static_cast<std::size_t>(axes[i].picked[at[i]]);
    result += bytes.substr(flat * element_bytes, element_bytes);
    std::size_t i = shape.size();
    while (i > 0 && ++at[i - 1] == axes[i - 1].picked.size()) at[--i] = 0;
    if (i == 0) return result;
  }
}

TEST(SafetensorsSlices, AgreeWithPythonForRandomSlices) {
  std::mt19937 random(2026);
  const auto number = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  const std::vector<std::pair<const char*, std::size_t>> dtypes = {
      {"U8", 1}, {"BF16", 2}, {"F32", 4}, {"F64", 8}, {"C64", 8}};
  for (int round = 0; round < 4000; ++round) {
    const auto& [dtype, element_bytes] = dtypes[random() % dtypes.size()];
    std::vector<std::uint64_t> shape;
    for (int rank = number(0, 4); rank > 0; --rank) shape.push_back(static_cast<std::uint64_t>(number(0, 6)));
    const Checkpoint checkpoint = SafetensorsFile().tensor("before", "U8", {3}).tensor("w", dtype, shape).open();
    const Tensor& w = checkpoint.at("w");

    Slice slice;
    std::vector<Axis> axes;
    std::vector<std::uint64_t> expected_shape;
    const std::size_t given = random() % (shape.size() + 1);
    const std::size_t ellipsis = random() % 3 == 0 ? random() % (given + 1) : given + 1;  // before this index
    const std::size_t skipped = ellipsis <= given ? shape.size() - given : 0;
    for (std::size_t i = 0; i < shape.size(); ++i) {
      const auto size = static_cast<std::int64_t>(shape[i]);
      const bool before = i < ellipsis && i < given, after = i >= ellipsis + skipped && i - skipped < given;
      if (i == ellipsis) slice.push_back(SliceIndex::ellipsis());
      Axis axis;
      if (!before && !after) {
        axis.picked = python_range({}, {}, 1, size);
      } else if (size > 0 && random() % 4 == 0) {
        const std::int64_t at = number(static_cast<int>(-size), static_cast<int>(size) - 1);
        slice.push_back(SliceIndex::at(at));
        axis = {{at < 0 ? at + size : at}, true};
      } else {
        const auto end = [&]() -> Integer { return random() % 4 == 0 ? Integer() : Integer(number(-9, 9)); };
        const std::int64_t step =
            std::vector<std::int64_t>{1, 1, 2, 3, -1, -2, -3, 7, -7, INT64_MAX, INT64_MIN}[random() % 11];
        const Integer start = end(), stop = end();
        slice.push_back(SliceIndex::range(start, stop, step));
        // A step past the end does the same as a step of 1000, which does not overflow here.
        axis.picked = python_range(start, stop, std::clamp<std::int64_t>(step, -1000, 1000), size);
      }
      if (!axis.dropped) expected_shape.push_back(axis.picked.size());
      axes.push_back(std::move(axis));
    }
    if (ellipsis == shape.size()) slice.push_back(SliceIndex::ellipsis());

    const Tensor view = w.slice(slice);
    ASSERT_EQ(view.shape(), Shape(expected_shape)) << round;
    ASSERT_EQ(text_of(view), python_slice(text_of(w), shape, element_bytes, axes)) << round;
    ASSERT_EQ(text_of(view.contiguous()), text_of(view)) << round;
  }
}

// A slice of a slice is a slice.
TEST(SafetensorsSlices, CanBeSlicedAgain) {
  std::vector<std::uint8_t> values(60);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::uint8_t>(i);
  const Checkpoint checkpoint = SafetensorsFile().values<std::uint8_t>("w", "U8", {3, 20}, values).open();
  const Tensor view = checkpoint.at("w").slice(parse_slice("::-1, 2:18:3")).slice(parse_slice("1:, ::-2"));
  EXPECT_EQ(view.shape(), (Shape{2, 3}));
  EXPECT_EQ(test::values_of<std::uint8_t>(view), (std::vector<std::uint8_t>{37, 31, 25, 17, 11, 5}));
}

TEST(SafetensorsSlices, ClampRangesButNotIndices) {
  const Checkpoint checkpoint = SafetensorsFile().tensor("w", "U8", {4}).open();
  const Tensor& w = checkpoint.at("w");
  EXPECT_EQ(w.slice(parse_slice("2:99")).shape(), Shape{2});
  EXPECT_EQ(w.slice(parse_slice("99:")).shape(), Shape{0});
  EXPECT_EQ(w.slice(parse_slice("-99:2")).shape(), Shape{2});
  EXPECT_EQ(w.slice(parse_slice("3:1")).shape(), Shape{0});
  EXPECT_EQ(w.slice(parse_slice("-1")).shape(), Shape{});
  EXPECT_ERROR(w.slice(parse_slice("4")), Errc::invalid_argument, "index 4 of a dimension of 4");
  EXPECT_ERROR(w.slice(parse_slice("-5")), Errc::invalid_argument, "index -5");
  EXPECT_ERROR(w.slice(parse_slice("0,0")), Errc::invalid_argument, "2 indices for a tensor of rank 1");
  EXPECT_ERROR(w.slice(parse_slice("...,...")), Errc::invalid_argument, "more than one \"...\"");
  EXPECT_ERROR(parse_slice("::0"), Errc::invalid_argument, "is no slice");
}

// Elements narrower than a byte can be cut only between bytes.
TEST(SafetensorsSlices, OfElementsNarrowerThanAByteFallOnBytes) {
  const Checkpoint checkpoint = SafetensorsFile().tensor("f4", "F4", {4, 6}).tensor("f6", "F6_E2M3", {3, 8}).open();
  const Tensor &f4 = checkpoint.at("f4"), &f6 = checkpoint.at("f6");
  EXPECT_EQ(text_of(f4.slice(parse_slice("1:3"))), text_of(f4).substr(3, 6));
  EXPECT_EQ(text_of(f4.slice(parse_slice("2"))), text_of(f4).substr(6, 3));
  EXPECT_EQ(text_of(f4.slice(parse_slice(":, 2:4"))),
            text_of(f4).substr(1, 1) + text_of(f4).substr(4, 1) + text_of(f4).substr(7, 1) + text_of(f4).substr(10, 1));
  EXPECT_EQ(text_of(f6.slice(parse_slice("::-1, 4:"))),
            text_of(f6).substr(15, 3) + text_of(f6).substr(9, 3) + text_of(f6).substr(3, 3));
  EXPECT_ERROR(text_of(f4.slice(parse_slice("0, 1:3"))), Errc::unsupported, "inside a block");
  EXPECT_TRUE(test::error_of([&] { text_of(f4.slice(parse_slice("0, 0:3"))); }));
  EXPECT_TRUE(test::error_of([&] { text_of(f6.slice(parse_slice("0, 2:6"))); }));
}

}  // namespace
}  // namespace ballast
