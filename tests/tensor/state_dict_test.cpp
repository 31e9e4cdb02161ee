#include <ballast/state_dict.hpp>

#include <gtest/gtest.h>

#include <random>

#include "support/expect_error.hpp"
#include "tensor/doors.hpp"

namespace ballast {
namespace {

TEST(StateDict, KeepsTheOrderOfInsertion) {
  StateDict tensors;
  for (const char* name : {"z", "a", "m"}) EXPECT_TRUE(tensors.insert(name, Tensor()));
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors) names.emplace_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"z", "a", "m"}));
}

TEST(StateDict, RefusesASecondTensorOfOneName) {
  StateDict tensors;
  EXPECT_TRUE(tensors.insert("a", Tensor()));
  EXPECT_FALSE(tensors.insert("a", Tensor()));
  EXPECT_EQ(tensors.size(), 1u);
}

TEST(StateDict, FindsEveryNameOfMany) {
  StateDict tensors;
  const auto name = [](int i) { return "layer." + std::to_string(i) + (i % 3 ? ".weight" : std::string(200, 'x')); };
  for (int i = 0; i < 20'000; ++i) ASSERT_TRUE(tensors.insert(name(i), Tensor()));
  for (int i = 0; i < 20'000; ++i) ASSERT_TRUE(tensors.contains(name(i)));
  EXPECT_FALSE(tensors.contains("layer.20000.weight"));
  EXPECT_FALSE(StateDict().contains(""));
  EXPECT_ERROR(tensors.at("nobody"), Errc::not_found, "\"nobody\"");
}

TEST(StateDict, TakesNamesOfEveryKind) {
  StateDict tensors;
  const std::string long_name(1 << 20, 'n');
  for (const std::string& name : {std::string(), std::string("\0x", 2), long_name, std::string("\xff")}) {
    EXPECT_TRUE(tensors.insert(name, Tensor()));
    EXPECT_TRUE(tensors.contains(name));
  }
}

TEST(StateDict, CopiesDoNotWriteIntoEachOther) {
  StateDict first;
  first.insert("a", Tensor());
  StateDict second = first;
  first.insert("first", Tensor());
  second.insert("other", Tensor());
  StateDict third;
  third = second;
  third.insert("third", Tensor());
  second.insert("again", Tensor());
  EXPECT_EQ(first[1].name, "first");
  EXPECT_EQ(second[1].name, "other");
  EXPECT_EQ(second[2].name, "again");
  EXPECT_EQ(third[2].name, "third");
  StateDict moved = std::move(third);
  moved.insert("more", Tensor());
  EXPECT_EQ(moved[2].name, "third");
  EXPECT_TRUE(moved.contains("more"));
}

TEST(StateDict, AdoptsManyAndFindsTheFirstRepeatedName) {
  const auto names = std::make_shared<std::vector<std::string>>();
  for (int i = 0; i < 1000; ++i) names->push_back(std::to_string(i % 700));
  std::vector<StateDict::Entry> entries;
  for (const std::string& name : *names) entries.push_back({name, Tensor()});
  StateDict tensors;
  Doors::keep_alive(tensors, names);
  EXPECT_EQ(Doors::adopt(tensors, entries), 700u);

  entries.erase(entries.begin() + 700, entries.end());
  StateDict good;
  Doors::keep_alive(good, names);
  EXPECT_EQ(Doors::adopt(good, entries), std::nullopt);
  EXPECT_TRUE(good.contains("699"));
  EXPECT_TRUE(good.insert("another", Tensor()));
}

TEST(StateDict, AdoptsOthersOneAfterTheOther) {
  StateDict a, b, c;
  a.insert("x", Tensor());
  b.insert("z", Tensor());
  b.insert("y", Tensor());
  c.insert("x", Tensor());
  StateDict all, clash;
  EXPECT_EQ(Doors::adopt_all(all, {a, b}), std::nullopt);
  EXPECT_EQ(all[1].name, "z");
  EXPECT_TRUE(all.contains("y"));
  EXPECT_EQ(Doors::adopt_all(clash, {a, b, c}), 3u);
  EXPECT_EQ(clash[3].name, "x");
}

}  // namespace
}  // namespace ballast
