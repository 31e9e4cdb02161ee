#include <ballast/error.hpp>
#include <ballast/open.hpp>
#include <ballast/private_maps.hpp>
#include <ballast/save.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <string>

#include "builders/temp_dir.hpp"

namespace ballast {
namespace {

class PrivateMapsTest : public testing::Test {
 protected:
  PrivateMapsTest() : path_(dir_ / "a.safetensors") {
    StateDict state;
    state.insert("m", Tensor::from_values<std::int32_t>(DType::i32, {2, 3}, std::array{0, 1, 2, 3, 4, 5}));
    save(state, path_);
  }

  static std::int32_t value_at(const PrivateBytes& bytes, std::size_t row, std::size_t column) {
    const Strides strides = bytes.tensor.strides();
    const auto distance = static_cast<std::int64_t>(row) * strides[0] + static_cast<std::int64_t>(column) * strides[1];
    std::int32_t value = 0;
    std::memcpy(&value, bytes.data + distance * 4, sizeof value);
    return value;
  }

  test::TempDir dir_;
  std::string path_;
  PrivateMaps maps_;
};

TEST_F(PrivateMapsTest, SharesWhatIsWrittenWithOtherViewsAndNeverWithTheFile) {
  const std::string before = dir_.read("a.safetensors");
  const Tensor tensor = open(path_).at("m");
  const PrivateBytes first = maps_.bytes_of(tensor), second = maps_.bytes_of(tensor.slice(parse_slice("1")));
  const std::int32_t hundred = 100;
  std::memcpy(second.data, &hundred, sizeof hundred);
  EXPECT_EQ(value_at(first, 1, 0), 100);
  EXPECT_EQ(tensor.values<std::int32_t>()[3], 3) << "Ballast itself reads the file";
  EXPECT_EQ(dir_.read("a.safetensors"), before);
}

TEST_F(PrivateMapsTest, FollowsStridesThatAreNegative) {
  const Tensor tensor = open(path_).at("m").slice(parse_slice("::-1, ::2"));
  const PrivateBytes bytes = maps_.bytes_of(tensor);
  EXPECT_EQ(value_at(bytes, 0, 0), 3);
  EXPECT_EQ(value_at(bytes, 0, 1), 5);
  EXPECT_EQ(value_at(bytes, 1, 1), 2);
}

TEST_F(PrivateMapsTest, OutlivesTheCheckpointTheFileAndTheMaps) {
  PrivateBytes bytes;
  {
    PrivateMaps maps;
    bytes = maps.bytes_of(open(path_).at("m"));
  }
  std::filesystem::remove(path_);
  EXPECT_EQ(value_at(bytes, 1, 2), 5);
}

TEST_F(PrivateMapsTest, CopiesWhatLiesInNoFileAsItIs) {
  const Tensor in_memory = Tensor::from_values<std::int32_t>(DType::i32, {2, 3}, std::array{0, 1, 2, 3, 4, 5});
  const PrivateBytes copy = maps_.bytes_of(in_memory);
  EXPECT_NE(copy.data, in_memory.bytes().data()) << "the tensor itself must not change";
  EXPECT_EQ(value_at(copy, 1, 1), 4);
  const PrivateBytes cast = maps_.bytes_of(open(path_).at("m").slice(parse_slice("0")));
  EXPECT_EQ(cast.tensor.numel(), 3u);
}

TEST_F(PrivateMapsTest, CopiesATensorThatTheFileNoLongerHolds) {
  const Tensor tensor = open(path_).at("m");
  std::filesystem::resize_file(path_, 16);
  EXPECT_THROW(maps_.bytes_of(tensor), Error) << "a map of the file as it is now would end before the tensor";
}

TEST_F(PrivateMapsTest, HasNothingToMapForAnEmptyTensor) {
  const PrivateBytes bytes = maps_.bytes_of(open(path_).at("m").slice(parse_slice("2:")));
  EXPECT_EQ(bytes.tensor.nbytes(), 0u);
}

}  // namespace
}  // namespace ballast
