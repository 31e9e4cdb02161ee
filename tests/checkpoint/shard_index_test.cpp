// index.json: what it may say, and the lies that it is refused for.
#include <gtest/gtest.h>

#include <set>

#include "checkpoint/recognize/shard_index.hpp"
#include "support/cpu_time.hpp"
#include "support/expect_error.hpp"

namespace ballast {
namespace {

using namespace std::string_literals;

ShardIndex parse(const std::string& json, const Limits& limits = {}) { return parse_shard_index(json, limits); }

// A weight map that sends "w" to a file. The name of the file is escaped for JSON already.
std::string to(const std::string& file) { return R"({"weight_map":{"w":")" + file + R"("}})"; }

TEST(ShardIndex, SaysWhichFileHoldsWhichTensor) {
  const ShardIndex index = parse(
      R"({"metadata":{"total_size":12},"weight_map":{"b":"2.safetensors","a":"1.safetensors","c":"2.safetensors"}})");
  EXPECT_EQ(index.files, (std::vector<std::string>{"1.safetensors", "2.safetensors"}));
  EXPECT_EQ(index.total_size, 12u);
  ASSERT_EQ(index.weight_map.size(), 3u);
  EXPECT_EQ(index.weight_map[0].tensor, "b");
  EXPECT_EQ(index.files[index.weight_map[0].file], "2.safetensors");
  EXPECT_EQ(index.weight_map[1].tensor, "a");
  EXPECT_EQ(index.files[index.weight_map[1].file], "1.safetensors");
}

TEST(ShardIndex, ReadsOldAndOddMetadata) {
  EXPECT_FALSE(parse(to("a")).total_size);
  EXPECT_FALSE(parse(R"({"metadata":{},"weight_map":{}})").total_size);
  EXPECT_FALSE(parse(R"({"metadata":null,"weight_map":{}})").total_size);
  EXPECT_FALSE(parse(R"({"metadata":[],"weight_map":{}})").total_size);
  EXPECT_EQ(parse(R"({"metadata":{"total_size":1.2e3},"weight_map":{}})").total_size, 1200u);
  EXPECT_EQ(parse(R"({"metadata":{"total_size":18446744073709551615},"weight_map":{}})").total_size, UINT64_MAX);
  for (const char* size : {"-1", "-0.5", "1e300", "\"12\"", "null", "[12]"}) {
    EXPECT_FALSE(parse(R"({"metadata":{"total_size":)"s + size + R"(},"weight_map":{}})").total_size) << size;
  }
  const ShardIndex index = parse(R"({"metadata":{"a":"b","n":1,"l":[]},"weight_map":{},"extra":{"x":1}})");
  EXPECT_EQ(index.metadata.size(), 1u);
  EXPECT_EQ(index.metadata.at("a"), "b");
}

TEST(ShardIndex, NeverLeadsOutsideItsFolder) {
  const char* const escapes[] = {"../w",    "..",         ".",        "/etc/passwd", "a/b",
                                 "a/",      "/",          "a/../b",   "..\\\\w",     "a\\\\b",
                                 "C:\\\\w", "",           "a\\u0000", "\\u0000",     "\\u002e\\u002e",
                                 "a\\/b",   "\\u002fetc", "./w",      "//server/w",  "\\\\\\\\server\\\\w"};
  for (const char* file : escapes) {
    EXPECT_ERROR(parse(to(file)), Errc::unsafe, "for tensor \"w\", which is not in its own folder") << file;
  }
}

TEST(ShardIndex, LetsOddNamesStayInTheFolder) {
  for (const char* file :
       {"...", "..a", "a..", "-", "~", " ", "$HOME", "%2e%2e%2fw", "w\\n", "\\u00e9", "con", "a:b", "*"}) {
    EXPECT_EQ(parse(to(file)).files.size(), 1u) << file;
  }
}

TEST(ShardIndex, RefusesKeysThatAreThereTwice) {
  for (const char* second : {R"("w":"b")", R"("w":"a")", R"("\u0077":"a")"}) {
    EXPECT_ERROR(parse(R"({"weight_map":{"w":"a",)" + std::string(second) + "}}"), Errc::malformed,
                 "\"weight_map\" has tensor \"w\" twice");
  }
  EXPECT_ERROR(parse(R"({"weight_map":{},"weight_map":{}})"), Errc::malformed, "twice");
  EXPECT_ERROR(parse(R"({"metadata":{"total_size":1,"total_size":2},"weight_map":{}})"), Errc::malformed, "twice");
  EXPECT_ERROR(parse(R"({"weight_map":{},"x":[[{"y":{"z":1,"z":2}}]]})"), Errc::malformed, "twice");
}

TEST(ShardIndex, RefusesTheWrongTypes) {
  EXPECT_ERROR_AT(parse(R"({"weight_map":{"w":1}})"), Errc::malformed, "expected the name of a file, a string", 19u);
  EXPECT_ERROR_AT(parse(R"({"weight_map":{"w":null}})"), Errc::malformed, "expected the name of a file", 19u);
  EXPECT_ERROR_AT(parse(R"({"weight_map":{"w":["a"]}})"), Errc::malformed, "expected the name of a file", 19u);
  EXPECT_ERROR_AT(parse(R"({"weight_map":[]})"), Errc::malformed, "expected '{' to begin \"weight_map\"", 14u);
  EXPECT_ERROR_AT(parse(R"({"weight_map":null})"), Errc::malformed, "expected '{' to begin \"weight_map\"", 14u);
  EXPECT_ERROR(parse(R"({})"), Errc::unsupported, "no \"weight_map\"");
  EXPECT_ERROR_AT(parse(R"([])"), Errc::malformed, "the index is no JSON object", 0u);
  EXPECT_ERROR_AT(parse(R"("weight_map")"), Errc::malformed, "no JSON object", 0u);
  EXPECT_ERROR_AT(parse(""), Errc::malformed, "no JSON object", 0u);
}

TEST(ShardIndex, RefusesWhatIsNotJson) {
  EXPECT_ERROR_AT(parse("{"), Errc::malformed, "the text ends early", 1u);
  EXPECT_ERROR_AT(parse(R"({"weight_map":{"w":"a"}}})"), Errc::malformed, "more text after the end", 24u);
  EXPECT_ERROR_AT(parse(R"({"weight_map":{"w":"a",}})"), Errc::malformed, "expected a tensor's name", 23u);
  EXPECT_ERROR_AT(parse("{\"weight_map\":{\"w\":\"\xFF\"}}"), Errc::malformed, "not UTF-8", 20u);
  EXPECT_ERROR_AT(parse("{\"weight_map\":{}}\0"s), Errc::malformed, "more text after the end", 17u);
  EXPECT_ERROR_AT(parse(R"({'weight_map':{}})"), Errc::malformed, "expected a key, a string", 1u);
  EXPECT_ERROR_AT(parse(R"({"weight_map":{"w":"\uD800"}})"), Errc::malformed, "half of a surrogate pair", 20u);
  EXPECT_ERROR_AT(parse(R"({"weight_map":{}} trailing)"), Errc::malformed, "more text after the end", 18u);
  EXPECT_ERROR(parse("{\"x\":" + std::string(100'000, '[')), Errc::malformed, "nested deeper than 8 levels");
}

std::string with_files(std::size_t count) {
  std::string json = R"({"weight_map":{)";
  for (std::size_t i = 0; i < count; ++i)
    json += (i ? ",\"" : "\"") + std::to_string(i) + "\":\"f" + std::to_string(i) + "\"";
  return json + "}}";
}

TEST(ShardIndex, StopsAtTheLimitOfFiles) {
  EXPECT_EQ(parse(with_files(100'000)).files.size(), 100'000u);
  EXPECT_ERROR(parse(with_files(100'001)), Errc::limit, "more than 100000 files");
}

TEST(ShardIndex, StopsAtTheLimitOfMetadata) {
  const std::string text = R"({"metadata":{"a":"1","b":"2","c":"3"},"weight_map":{}})";
  EXPECT_ERROR_AT(parse(text, {.max_metadata_keys = 2}), Errc::limit, "more than 2 metadata", 33u);
}

TEST(ShardIndex, TakesTimeThatGrowsLikeItsText) {
  const auto seconds = [](std::size_t count) {
    const std::string json = with_files(count);
    double best = 1e9;
    for (int round = 0; round < 3; ++round) {
      const double start = test::cpu_seconds();
      parse(json);
      best = std::min(best, test::cpu_seconds() - start);
    }
    return best;
  };
  double growth = 1e9;
  for (int tries = 0; tries < 4 && growth > 90; ++tries) growth = std::min(growth, seconds(96'000) / seconds(6'000));
  EXPECT_LE(growth, 90);  // for sixteen times the text; quadratic would be 256
}

TEST(ShardIndex, KeepsItsNamesAlive) {
  ShardIndex kept;
  {
    std::string json = R"({"weight_map":{"\u0077eight":"a"}})";
    kept = parse(json);
    json.assign(json.size(), 'x');
  }
  EXPECT_EQ(kept.weight_map.at(0).tensor, "weight");
}

}  // namespace
}  // namespace ballast
