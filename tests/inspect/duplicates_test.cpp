// Tensors with equal bytes: shared or stored again.
#include <gtest/gtest.h>

#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ballast/duplicates.hpp>

namespace ballast {
namespace {

using Names = std::vector<std::string>;

Tensor filled(std::uint64_t bytes, char with, std::size_t odd_at = ~std::size_t{0}, DType dtype = DType::u8) {
  std::string text(bytes, with);
  if (odd_at < bytes) text[odd_at] = 'x';
  return Tensor::from_bytes(dtype, {bytes / (dtype == DType::u8 ? 1 : 4)}, std::as_bytes(std::span(text)));
}

Checkpoint with(const std::vector<std::pair<std::string, Tensor>>& tensors) {
  Checkpoint checkpoint;
  for (const auto& [name, tensor] : tensors) checkpoint.tensors.insert(name, tensor);
  return checkpoint;
}

Names names_of(const Checkpoint& checkpoint, const Duplicates& same) {
  Names names;
  for (const std::size_t number : same.tensors) names.emplace_back(checkpoint.tensors[number].name);
  return names;
}

TEST(Duplicates, AreTensorsWithEqualBytesTheLargestWasteFirst) {
  const Checkpoint checkpoint = with({{"small.1", filled(10, 'a')},
                                      {"w", filled(100'000, 'a')},
                                      {"small.2", filled(10, 'a')},
                                      {"other", filled(100'000, 'b')},
                                      {"copy", filled(100'000, 'a')},
                                      {"third", filled(100'000, 'a')}});
  const std::vector<Duplicates> found = find_duplicates(checkpoint);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(names_of(checkpoint, found[0]), (Names{"w", "copy", "third"}));
  EXPECT_EQ(found[0].bytes, 100'000u);
  EXPECT_EQ(found[0].copies, 3u);
  EXPECT_EQ(found[0].wasted_bytes(), 200'000u);
  EXPECT_EQ(names_of(checkpoint, found[1]), (Names{"small.1", "small.2"}));
}

TEST(Duplicates, ThatShareTheirBytesAreStoredOnce) {
  const Tensor tensor = filled(100, 'a');
  const Checkpoint checkpoint = with({{"a", tensor}, {"b", tensor}, {"c", filled(100, 'a')}});
  const std::vector<Duplicates> found = find_duplicates(checkpoint);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(names_of(checkpoint, found[0]), (Names{"a", "b", "c"}));
  EXPECT_EQ(found[0].copies, 2u);
  const std::vector<Duplicates> shared = find_duplicates(with({{"a", tensor}, {"b", tensor}}));
  ASSERT_EQ(shared.size(), 1u);
  EXPECT_EQ(shared[0].wasted_bytes(), 0u);
}

TEST(Duplicates, AreNotTensorsThatOnlyBeginAndEndAlike) {
  EXPECT_TRUE(find_duplicates(with({{"a", filled(100'000, 'a')}, {"b", filled(100'000, 'a', 50'000)}})).empty());
  EXPECT_TRUE(find_duplicates(with({{"a", filled(100, 'a')}, {"b", filled(100, 'a', 99)}})).empty());
}

TEST(Duplicates, AreOfOneDtypeAndShapeAndHaveData) {
  const Tensor bytes = filled(16, 'a'), floats = filled(16, 'a', 99, DType::f32);
  EXPECT_TRUE(find_duplicates(with({{"a", bytes}, {"b", floats}, {"c", bytes.reshape({4, 4})}})).empty());
  EXPECT_TRUE(find_duplicates(with({{"a", filled(0, 'a')}, {"b", filled(0, 'a')}})).empty());
  EXPECT_TRUE(find_duplicates({}).empty());
}

TEST(Duplicates, AreLookedForAmongSomeTensorsOnly) {
  const Checkpoint checkpoint = with({{"a", filled(9, 'a')}, {"b", filled(9, 'a')}, {"c", filled(9, 'a')}});
  const std::size_t numbers[] = {0, 2};
  const std::vector<Duplicates> found = find_duplicates(checkpoint, numbers);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(names_of(checkpoint, found[0]), (Names{"a", "c"}));
}

}  // namespace
}  // namespace ballast
