// Single values of a config.json changed, and every other byte as it was.
#include <gtest/gtest.h>

#include "checkpoint/sidecars/config_text.hpp"
#include "support/expect_error.hpp"

namespace ballast {
namespace {

std::string without(std::string text, std::string_view key) {
  ConfigText config(std::move(text));
  config.remove(key);
  return config.text();
}

TEST(ConfigText, KeepsEveryOtherByte) {
  ConfigText config(
      "{ \"a\": 1e-05,\n\t\"torch_dtype\" :\"bfloat16\" , \"\\u0062\": 0.10000000000000001, \"c\": NaN}\n");
  EXPECT_EQ(config.replace("torch_dtype", "bfloat16", "float16"), 1u);
  EXPECT_EQ(config.text(),
            "{ \"a\": 1e-05,\n\t\"torch_dtype\" :\"float16\" , \"\\u0062\": 0.10000000000000001, \"c\": NaN}\n");
}

TEST(ConfigText, ReplacesInTheConfigurationsInside) {
  ConfigText config(R"({"dtype":"a","text_config":{"dtype":"a","x_config":{"dtype":"a"}},"other":{"dtype":"a"}})");
  EXPECT_EQ(config.replace("dtype", "a", "longer"), 3u);
  EXPECT_EQ(
      config.text(),
      R"({"dtype":"longer","text_config":{"dtype":"longer","x_config":{"dtype":"longer"}},"other":{"dtype":"a"}})");
  EXPECT_EQ(config.find("dtype"), "longer");
  EXPECT_EQ(config.find("other"), std::nullopt);
}

TEST(ConfigText, RemovesAMemberWithItsComma) {
  EXPECT_EQ(without(R"({"q": {"x": [1, 2]}, "a": 1})", "q"), R"({"a": 1})");
  EXPECT_EQ(without(R"({"a": 1, "q": {"x": 1}, "b": 2})", "q"), R"({"a": 1, "b": 2})");
  EXPECT_EQ(without("{\n  \"a\": 1,\n  \"q\": 2\n}", "q"), "{\n  \"a\": 1\n}");
  EXPECT_EQ(without(R"({"q": 1})", "q"), "{}");
  EXPECT_EQ(without(R"({"a": "q"})", "q"), R"({"a": "q"})");
}

TEST(ConfigText, RemovesWhatIsInsideOfItself) {
  EXPECT_EQ(without(R"({"q_config": {"q_config": 1, "b": 2}, "a": {"q_config": 3}})", "q_config"),
            R"({"a": {"q_config": 3}})");
  EXPECT_EQ(without(R"({"t_config": {"a": 1, "q_config": {}}, "q_config": 1})", "q_config"),
            R"({"t_config": {"a": 1}})");
  EXPECT_EQ(without(R"({"t_config": {"u_config": {"a": 1, "v_config": {"q": 2}, "q": 3}}})", "q"),
            R"({"t_config": {"u_config": {"a": 1, "v_config": {}}}})");
}

TEST(ConfigText, AddsAMemberInLinesLikeTheOthers) {
  const auto with = [](std::string text) {
    ConfigText config(std::move(text));
    config.add("q", Json::Members{{"x", Json::List{1, 2}}});
    return config.text();
  };
  EXPECT_EQ(with("{}"), R"({"q": {"x":[1,2]}})");
  EXPECT_EQ(with(R"({"a": {"b": 1}} )"), R"({"a": {"b": 1},"q": {"x":[1,2]}} )");
  EXPECT_EQ(with("{\n \"a\": 1\n}\n"), "{\n \"a\": 1,\n \"q\": {\n  \"x\": [\n   1,\n   2\n  ]\n }\n}\n");
  EXPECT_EQ(with("{\r\n  \"t_config\": {\"b\": 1}\r\n}"),
            "{\r\n  \"t_config\": {\"b\": 1},\r\n  \"q\": {\n    \"x\": [\n      1,\n      2\n    ]\n  }\r\n}");
}

TEST(ConfigText, RefusesWhatIsNoObject) {
  for (const char* text :
       {"", " ", "[]", "{", "{\"a\"", "{\"a\":", "{\"a\":1", "{\"a\":1,}", "{} x", "nonsense", "{\"a\":\xff}"})
    EXPECT_ERROR(ConfigText(text), Errc::malformed, "");
  EXPECT_ERROR(ConfigText(R"({"a":1,"a":2})"), Errc::malformed, "twice");
  EXPECT_ERROR(ConfigText("{\"a\":" + std::string(100'000, '[')), Errc::malformed, "nested deeper");
}

}  // namespace
}  // namespace ballast
