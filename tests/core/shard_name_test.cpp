#include "core/shard_name.hpp"

#include <gtest/gtest.h>

namespace ballast {
namespace {

TEST(ShardName, IsTakenApartAndPutTogether) {
  const auto shard = parse_shard_name("folder/model-00002-of-00012.safetensors");
  ASSERT_TRUE(shard);
  EXPECT_EQ(shard->stem, "folder/model");
  EXPECT_EQ(shard->number, 2u);
  EXPECT_EQ(shard->count, 12u);
  EXPECT_EQ(shard->ending, ".safetensors");
  EXPECT_EQ(shard->text(), "folder/model-00002-of-00012.safetensors");
  EXPECT_EQ(shard->whole(), "folder/model.safetensors");
  EXPECT_EQ((ShardName{"m", 1, 123456, ".pt"}).text(), "m-00001-of-123456.pt");
}

TEST(ShardName, IsUsualWithFiveDigitsAndNumbersThatMakeSense) {
  for (const char* name : {"m-1-of-2.bin", "m-00003-of-00002.bin", "m-00000-of-00002.bin"}) {
    EXPECT_TRUE(parse_shard_name(name)) << name;
    EXPECT_FALSE(parse_usual_shard_name(name)) << name;
  }
  EXPECT_TRUE(parse_usual_shard_name("m-00002-of-00002.bin"));
  EXPECT_TRUE(parse_usual_shard_name("-00002-of-00002.bin"));
}

TEST(ShardName, IsNotWhatLooksAlmostLikeOne) {
  for (const char* name : {"", "m", "m.bin", "m-of-2.bin", "m-1-of-.bin", "m-1of2.bin", "1-of-2.bin", "m-1-of-2",
                           "m-99999999999999999999-of-2.bin", "m-x1-of-2.bin"})
    EXPECT_FALSE(parse_shard_name(name)) << name;
}

TEST(ShardName, LeadsToTheWhole) {
  EXPECT_EQ(whole_of("m-00002-of-00012.safetensors"), "m.safetensors");
  EXPECT_EQ(whole_of("m.safetensors.index.json"), "m.safetensors");
  EXPECT_EQ(whole_of("m.safetensors"), "m.safetensors");
  EXPECT_EQ(whole_of("m-2-of-12.safetensors"), "m-2-of-12.safetensors");
  EXPECT_EQ(whole_of(""), "");
}

}  // namespace
}  // namespace ballast
