#include <ballast/json.hpp>

#include <gtest/gtest.h>
#include <ballast/error.hpp>

#include <cmath>
#include <limits>
#include <string>

#include "support/expect_error.hpp"

namespace ballast {
namespace {

using namespace std::string_literals;

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

TEST(Json, CannotFillTheMemory) {
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

TEST(Json, HasAnExponentIfPythonHasOne) {
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

TEST(Json, HasEveryNumberThatFits64Bits) {
  const Json json = Json::parse(
      "[-9223372036854775808, 9223372036854775807, -0, 1e308, -1.7976931348623157E+308, 1e-999, -1e-999, 0.1, 5e-324]");
  EXPECT_EQ(json.list()[0].integer(), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(json.list()[1].integer(), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(json.list()[2].integer(), 0);
  EXPECT_EQ(json.list()[3].number(), 1e308);
  EXPECT_EQ(json.list()[4].number(), std::numeric_limits<double>::lowest());
  EXPECT_EQ(json.list()[5].number(), 0);
  EXPECT_TRUE(std::signbit(json.list()[6].number()));
  EXPECT_EQ(json.list()[7].number(), 0.1);
  EXPECT_EQ(json.list()[8].number(), std::numeric_limits<double>::denorm_min());
  EXPECT_EQ(Json::parse("0." + std::string(400, '0') + "1").number(), 0);
  EXPECT_EQ(Json::parse("0." + std::string(400, '0') + "1e401").number(), 1);
  EXPECT_EQ(Json::parse("0." + std::string(400, '0') + "1e-99999999999999999999").number(), 0);
  for (const std::string& text : {"1e309"s, "-1e400"s, "1e99999999999999999999"s, std::string(400, '1') + ".5",
                                  "18446744073709551616"s, "-9223372036854775809"s})
    EXPECT_ERROR(Json::parse(text), Errc::malformed, "does not fit 64 bits");
}

TEST(Json, SaysWhatIsWrongAndAtWhichByte) {
  EXPECT_ERROR(Json::parse(R"({"a" 1})"), Errc::malformed, "this is no JSON: expected ':' after a key at its byte 5");
  EXPECT_ERROR(Json::parse("[1, 2"), Errc::malformed, "this is no JSON: the text ends early at its byte 5");
  EXPECT_ERROR(Json::parse("[\"\xc3\x28\"]"), Errc::malformed, "the text is not UTF-8 at its byte 2");
  EXPECT_ERROR(Json::parse(R"(["\ud800"])"), Errc::malformed, "half of a surrogate pair at its byte 2");
  EXPECT_EQ(Json::parse(R"(" \ud83d\ude42 é")").text(), " 🙂 é");
}

TEST(Json, IsRefusedIfItIsNotJson) {
  for (const char* text : {"", " ", "{", "[1,]", "{\"a\":1,}", "nul", "1 2", "{'a':1}", "\"\xff\"", "[NaN]", "[01]",
                           "99999999999999999999"})
    EXPECT_ERROR(Json::parse(text), Errc::malformed, "this is no JSON");
  EXPECT_ERROR(Json::parse(R"([{"a":1,"b":2,"a":3}])"), Errc::malformed, "the key \"a\" is there twice");
  EXPECT_ERROR(Json::parse(std::string(100, '[') + std::string(100, ']')), Errc::limit, "nested deeper than 64");
  EXPECT_NO_THROW(Json::parse(std::string(64, '[') + std::string(64, ']')));
}

}  // namespace
}  // namespace ballast
