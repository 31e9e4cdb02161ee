#include <ballast/json.hpp>

#include <gtest/gtest.h>
#include <ballast/error.hpp>

#include "support/expect_error.hpp"

namespace ballast {
namespace {

TEST(Json, IsReadInOrderAndWrittenBack) {
  const std::string text = R"({"z":[1,-2,1.0,1e-05,18446744073709551615,null,true],"a":{"ü\n":"x"},"e":[],"o":{}})";
  const Json json = Json::parse(text);
  EXPECT_EQ(to_string(json), text);
  EXPECT_EQ(json.members()[0].first, "z");
  EXPECT_EQ(json.at("z").list()[0].count(), 1u);
  EXPECT_EQ(json.at("z").list()[1].integer(), -2);
  EXPECT_TRUE(json.at("z").list()[2].is_double());
  EXPECT_EQ(json.at("z").list()[4].count(), 18446744073709551615u);
  EXPECT_TRUE(json.at("z").list()[5].is_null());
  EXPECT_EQ(json.at("a").at("ü\n").text(), "x");
  EXPECT_EQ(json.find("b"), nullptr);
  EXPECT_EQ(json.at("e").find("b"), nullptr);
}

TEST(Json, IsNoWayToFillTheMemory) {
  std::string zeros = "[0";
  for (int i = 0; i < (8 << 20); ++i) zeros += ",0";
  EXPECT_ERROR(Json::parse(zeros + "]"), Errc::limit, "more than 8388608 values");
}

TEST(Json, IsWrittenAsPythonWritesItWithAnIndent) {
  Json json;
  json.set("a", Json::List{1, 2.5});
  json.set("b", Json::Members{});
  json.set("a", Json::List{"x", false});
  EXPECT_EQ(to_string(json, 2), "{\n  \"a\": [\n    \"x\",\n    false\n  ],\n  \"b\": {}\n}");
  json.erase("a");
  EXPECT_EQ(to_string(json), "{\"b\":{}}");
}

TEST(Json, HasAnExponentWherePythonHasOne) {
  const std::string text = "[0.0001,1e-05,-0.00025,100000.0,1234567890123456.0,1e+16,1.5e-07,-0.0,0.1]";
  EXPECT_EQ(to_string(Json::parse(text)), text);
}

TEST(Json, OfAnyOtherKindIsAnErrorThatShowsIt) {
  EXPECT_ERROR(Json("a").count(), Errc::malformed, "\"a\" is no whole number of at least 0");
  EXPECT_ERROR(Json(-1).count(), Errc::malformed, "-1 is no whole number");
  EXPECT_ERROR(Json(1.5).integer(), Errc::malformed, "1.5 is no integer");
  EXPECT_ERROR(Json().text(), Errc::malformed, "null is no string");
  EXPECT_ERROR(Json(1).at("k"), Errc::malformed, "there is no \"k\"");
  EXPECT_ERROR(Json(1).set("k", 1), Errc::malformed, "1 is no object");
}

TEST(Json, ThatIsNoneIsRefused) {
  for (const char* text : {"", " ", "{", "[1,]", "{\"a\":1,}", "nul", "1 2", "{'a':1}", "\"\xff\"", "[NaN]", "[01]",
                           "99999999999999999999"})
    EXPECT_ERROR(Json::parse(text), Errc::malformed, "this is no JSON");
  EXPECT_ERROR(Json::parse(R"([{"a":1,"b":2,"a":3}])"), Errc::malformed, "the key \"a\" is there twice");
  EXPECT_ERROR(Json::parse(std::string(100, '[') + std::string(100, ']')), Errc::limit, "nested deeper than 64");
  EXPECT_NO_THROW(Json::parse(std::string(60, '[') + std::string(60, ']')));
}

}  // namespace
}  // namespace ballast
