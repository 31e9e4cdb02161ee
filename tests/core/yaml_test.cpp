#include "core/yaml.hpp"

#include <gtest/gtest.h>
#include <ballast/error.hpp>

#include <string>
#include <string_view>

#include "support/expect_error.hpp"

namespace ballast {
namespace {

std::string read(std::string_view text) { return to_string(parse_yaml(text)); }

TEST(Yaml, ReadsWhatModelCardsAreMadeOf) {
  EXPECT_EQ(read("license: mit\n"
                 "language:\n"
                 "- en\n"
                 "- de  # a comment\n"
                 "tags: [a, 'b c', \"d\"]\n"
                 "model-index:\n"
                 "  - name: x\n"
                 "    results:\n"
                 "    - task: {type: STS, value: 1}\n"
                 "      metrics:\n"
                 "        -\n"
                 "          type: cos\n"
                 "    - - nested\n"
                 "      - deeper\n"
                 "last:\n"),
            R"({"license":"mit","language":["en","de"],"tags":["a","b c","d"],"model-index":[{"name":"x","results":)"
            R"([{"task":{"type":"STS","value":1},"metrics":[{"type":"cos"}]},["nested","deeper"]]}],"last":null})");
}

TEST(Yaml, TakesPlainScalarsForWhatYaml11TakesThemFor) {
  struct Case {
    std::string_view text, json;
  };
  constexpr Case kCases[] = {
      {"no", "false"},
      {"Yes", "true"},
      {"on", "true"},
      {"nO", "\"nO\""},
      {"~", "null"},
      {"", "null"},
      {"12", "12"},
      {"-3", "-3"},
      {"017", "15"},
      {"019", "\"019\""},
      {"0x1F", "31"},
      {"0b11", "3"},
      {"1_000", "1000"},
      {"12:30", "750"},
      {"1.0", "1.0"},
      {".5", "0.5"},
      {"1e5", "\"1e5\""},
      {"1.5e+3", "1500.0"},
      {"v1", "\"v1\""},
      {"1.0.0", "\"1.0.0\""},
      {"+4", "4"},
      {"-", "[null]"},
      {"a#b", "\"a#b\""},
      {"a: b", "{\"a\":\"b\"}"},
      {"a:b", "\"a:b\""},
      {"'no'", "\"no\""},
      {"'it''s'", "\"it's\""},
      {"2024-01-01", "\"2024-01-01\""},
      {"https://x.y/z", "\"https://x.y/z\""},
      {"99999999999999999999", "\"99999999999999999999\""},
  };
  for (const auto& [text, json] : kCases) EXPECT_EQ(read(text), json) << text;
}

TEST(Yaml, JoinsTheLinesOfAScalar) {
  EXPECT_EQ(read("a: one\n  two\n\n  three\nb: x"), R"({"a":"one two\nthree","b":"x"})");
  EXPECT_EQ(read("a: 'one  \n  two'\nb: \"x \\\n  y\\u00e9\\n\""), R"({"a":"one two","b":"x yé\n"})");
  EXPECT_EQ(read("a: |\n  one\n   two\n\n\nb: >-\n  one\n  two\n\n  three\n    four\n  five\n"),
            R"({"a":"one\n two\n","b":"one two\nthree\n  four\nfive"})");
  EXPECT_EQ(read("a: |+\n  one\n\nb: |2\n   one\n"), R"({"a":"one\n\n","b":" one\n"})");
  EXPECT_EQ(read("a: [x,\n  y, # comment\n  {b: c, d}]\n"), R"({"a":["x","y",{"b":"c","d":null}]})");
}

TEST(Yaml, TheLastOfTwoEqualKeysCounts) { EXPECT_EQ(read("a: 1\nb: 2\na: 3\n"), R"({"a":3,"b":2})"); }

TEST(Yaml, SaysInWhichLineItStoppedUnderstanding) {
  EXPECT_ERROR(parse_yaml("a: 1\nb: c: d\n"), Errc::malformed, "line 2: a colon that makes a key");
  EXPECT_ERROR(parse_yaml("a: 1\n  b: 2\n"), Errc::malformed, "line 2");
  EXPECT_ERROR(parse_yaml("a:\n  - b\n c: d\n"), Errc::malformed, "line 3");
}

TEST(Yaml, RefusesWhatCardsDoNotNeed) {
  EXPECT_ERROR(parse_yaml("a: &x 1"), Errc::unsupported, "an anchor or an alias");
  EXPECT_ERROR(parse_yaml("a: *x"), Errc::unsupported, "an anchor or an alias");
  EXPECT_ERROR(parse_yaml("a: !!str 1"), Errc::unsupported, "a tag");
  EXPECT_ERROR(parse_yaml("? a\n: b"), Errc::unsupported, "a key that is not on one line");
  EXPECT_ERROR(parse_yaml("%YAML 1.1\n"), Errc::unsupported, "a directive");
  EXPECT_ERROR(parse_yaml("a: 1\n---\nb: 2\n"), Errc::unsupported, "more than one document");
}

TEST(Yaml, SurvivesAnyText) {
  for (const std::string_view text :
       {"a: 'x",    "a: \"x",   "a: \"\\",  "a: \"\\x\"",    "a: \"\\ud800\"", "a: [",      "a: {",    "a: [b",
        "a: [b: c", "a: {b: ",  "a: |9x\n", "a: |\n",        "a: >",           "a: @x",     "a: `x",   "a: %x",
        "a: ]",     "a: }",     "a: ,",     "\ta: b",        "a:\n\t- b",      "- a\nb: c", "a\nb: c", "[a]: b",
        "a: [b] c", "a: 'b' c", "a: [,]",   "a: [b c: d e]", "\x01",           "a: \xff"}) {
    EXPECT_THROW(
        {
          const Json json = parse_yaml(text);
          if (json.is_object()) throw Error(Errc::malformed, "it was read after all");
        },
        Error)
        << text;
  }
}

TEST(Yaml, IsNotDugIntoWithoutEnd) {
  EXPECT_ERROR(parse_yaml(std::string(100000, '[')), Errc::limit, "nested deeper than 32");
  EXPECT_ERROR(parse_yaml(std::string(100000, '{')), Errc::limit, "nested deeper than 32");
  std::string dashes, keys, steps;
  for (int i = 0; i < 50000; ++i) dashes += "- ";
  for (int i = 0; i < 200; ++i) steps += std::string(static_cast<std::size_t>(i), ' ') + "a:\n";
  for (int i = 0; i < 2000; ++i) keys += "k" + std::to_string(i) + ": 1\n";
  EXPECT_ERROR(parse_yaml(dashes), Errc::limit, "nested deeper than 32");
  EXPECT_ERROR(parse_yaml(steps), Errc::limit, "nested deeper than 32");
  EXPECT_ERROR(parse_yaml(keys), Errc::limit, "more than 1024 keys");
}

}  // namespace
}  // namespace ballast
