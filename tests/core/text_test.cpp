#include "core/text.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace ballast {
namespace {

using namespace std::string_literals;

TEST(EscapeForTerminal, LeavesReadableTextAlone) {
  for (const char* text : {"", "layers.0.weight", "größe", "模型.权重", "🙂", "a\\b \"c\""})
    EXPECT_EQ(escape_for_terminal(text), text);
}

TEST(EscapeForTerminal, ShowsWhatWouldMoveTheCursorReorderTheLineOrHide) {
  EXPECT_EQ(escape_for_terminal("a\x1b[31m"), "a\\x1b[31m");
  EXPECT_EQ(escape_for_terminal("a\n\r\t\0b\x7f"s), "a\\x0a\\x0d\\x09\\x00b\\x7f");
  EXPECT_EQ(escape_for_terminal("\u009b31m"), "\\u{9b}31m");
  EXPECT_EQ(escape_for_terminal("a\u202eb\u2066c\u200f"), "a\\u{202e}b\\u{2066}c\\u{200f}");
  EXPECT_EQ(escape_for_terminal("a\u200bb\ufeff"), "a\\u{200b}b\\u{feff}");
  EXPECT_EQ(escape_for_terminal("\u3164\u2800\u1160\uffa0\u00ad"), "\\u{3164}\\u{2800}\\u{1160}\\u{ffa0}\\u{ad}");
}

TEST(EscapeForTerminal, FindsWhatIsNotPlainAtEveryPositionOfALongName) {
  for (std::size_t place = 0; place < 40; ++place) {
    for (const auto& [raw, shown] :
         {std::pair{"\x1f"s, "\\x1f"s}, {"\x7f"s, "\\x7f"s}, {"\x80"s, "\\x80"s}, {"\0"s, "\\x00"s}}) {
      const std::string before(place, '~'), after(39 - place, ' ');
      EXPECT_EQ(escape_for_terminal(before + raw + after), before + shown + after);
    }
  }
}

TEST(EscapeForTerminal, ShowsBytesThatAreNotUtf8) {
  EXPECT_EQ(escape_for_terminal("\xff\x80x"), "\\xff\\x80x");
  EXPECT_EQ(escape_for_terminal("\xc0\xaf"), "\\xc0\\xaf") << "overlong";
  EXPECT_EQ(escape_for_terminal("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "surrogate";
  EXPECT_EQ(escape_for_terminal("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80") << "past U+10FFFF";
  EXPECT_EQ(escape_for_terminal("\xe6\xa8"), "\\xe6\\xa8") << "cut off";
}

TEST(ValidUtf8Prefix, EndsAtTheFirstByteThatIsNotUtf8) {
  for (std::size_t place = 0; place < 150; ++place) {
    const std::string before(place, 'a'), after(150 - place, 'b');
    EXPECT_EQ(valid_utf8_prefix(before + "é模🙂" + after), 150 + 9u);
    EXPECT_EQ(valid_utf8_prefix(before + "é\x80" + after), place + 2);
    EXPECT_EQ(valid_utf8_prefix(before + "\xff" + after), place);
  }
  EXPECT_EQ(valid_utf8_prefix(""), 0u);
}

TEST(Quote, EscapesAndCutsLongNamesBetweenCharacters) {
  EXPECT_EQ(quote("w"), "\"w\"");
  EXPECT_EQ(quote("a\"b\\c\n"), "\"a\\\"b\\\\c\\x0a\"");
  EXPECT_EQ(quote(std::string(120, 'x')).size(), 122u);

  std::string name;
  for (int i = 0; i < 1000; ++i) name += "模";
  const std::string quoted = quote(name);
  EXPECT_EQ(quoted.find("\\x"), std::string::npos) << quoted;
  EXPECT_LT(quoted.size(), 150u);
  EXPECT_TRUE(quoted.ends_with("\" (3000 bytes)")) << quoted;
  EXPECT_LT(quote(std::string(1'000'000, '\x80')).size(), 600u);
}

TEST(FormatBytes, HasThreeDigitsAndDecimalUnits) {
  const std::pair<std::uint64_t, const char*> cases[] = {
      {0, "0 B"},
      {999, "999 B"},
      {1000, "1.00 kB"},
      {1234, "1.23 kB"},
      {12'345, "12.3 kB"},
      {123'456, "123 kB"},
      {999'499, "999 kB"},
      {999'999, "1.00 MB"},
      {9'999'999, "10.0 MB"},
      {5'000'000'000, "5.00 GB"},
      {18'446'744'073'709'551'615u, "18.4 EB"},
  };
  for (const auto& [bytes, text] : cases) EXPECT_EQ(format_bytes(bytes), text);
}

TEST(FormatCount, WritesSmallCountsInFull) {
  const std::pair<std::uint64_t, const char*> cases[] = {
      {0, "0"},
      {11'008, "11 008"},
      {999'999, "999 999"},
      {1'000'000, "1.00 M"},
      {999'999'999, "1.00 B"},
      {6'738'415'616, "6.74 B"},
      {18'446'744'073'709'551'615u, "18446744 T"},
  };
  for (const auto& [count, text] : cases) EXPECT_EQ(format_count(count), text);
}

TEST(ParseBytes, KnowsDecimalAndBinaryUnits) {
  const std::pair<const char*, std::uint64_t> cases[] = {
      {"0", 0},
      {"123", 123},
      {"5GB", 5'000'000'000},
      {"5 gb", 5'000'000'000},
      {"64MiB", 64u << 20},
      {"1.5MiB", 1'572'864},
      {"0.000001TB", 1'000'000},
      {"2TiB", std::uint64_t{2} << 40},
      {"7B", 7},
      {"18446744073709551615", 18'446'744'073'709'551'615u},
  };
  for (const auto& [text, bytes] : cases) EXPECT_EQ(parse_bytes(text), bytes) << text;
}

TEST(ParseBytes, GivesNothingForWhatIsUnclearOrTooMuch) {
  for (const char* text : {"", "GB", "-1", "+1", "1.", ".5GB", "5G", "5XB", "5 GB ", "5  GB", "1e9", "0x10",
                           "1.0000001GB", "18446744073709551616", "99999999TB", "18446744.1TB", "５GB"})
    EXPECT_EQ(parse_bytes(text), std::nullopt) << text;
}

TEST(NaturalLess, ComparesDigitsAsNumbersOfAnyLength) {
  EXPECT_TRUE(natural_less("layers.2.w", "layers.10.w"));
  EXPECT_FALSE(natural_less("layers.10.w", "layers.2.w"));
  EXPECT_TRUE(natural_less("a9", "a" + std::string(100, '9')));
  EXPECT_TRUE(natural_less("a", "a0"));
  EXPECT_TRUE(natural_less("a1b", "a01b")) << "fewer leading zeros first";
  EXPECT_TRUE(natural_less("a01b", "a1c"));
  EXPECT_TRUE(natural_less("a.b", "a0b")) << "a byte against a number";
  EXPECT_TRUE(natural_less("z", "\xc3\xa9")) << "bytes are unsigned";
}

TEST(NaturalLess, IsATotalOrder) {
  std::mt19937 random(1);
  std::vector<std::string> names;
  for (int i = 0; i < 120; ++i) {
    std::string name;
    for (auto length = random() % 6; length > 0; --length) name += "001a.\xff"[random() % 6];
    names.push_back(name);
  }
  for (const auto& a : names)
    for (const auto& b : names) {
      ASSERT_EQ(!natural_less(a, b) && !natural_less(b, a), a == b) << a << " and " << b;
      if (!natural_less(a, b)) continue;
      ASSERT_FALSE(natural_less(b, a)) << a << " and " << b;
      for (const auto& c : names)
        if (natural_less(b, c)) {
          ASSERT_TRUE(natural_less(a, c)) << a << ", " << b << " and " << c;
        }
    }
}

TEST(NaturalOrder, IsThatOfNaturalLess) {
  std::mt19937 random(2);
  for (int round = 0; round < 200; ++round) {
    const std::string stem(random() % 20, 'x');
    std::vector<std::string> names = {stem, stem + "0", stem + std::string(300, '9'),
                                      stem + std::string(256, '8') + "a"};
    for (int i = 0; i < 60; ++i) {
      std::string name = stem;
      for (auto length = random() % 14; length > 0; --length) name += "0019a./\xff\0"s[random() % 9];
      names.push_back(name);
    }
    std::ranges::shuffle(names, random);
    const std::vector<std::string_view> views(names.begin(), names.end());
    std::vector<std::string_view> sorted = views, ordered;
    std::ranges::stable_sort(sorted, natural_less);
    for (const std::size_t number : natural_order(views)) ordered.push_back(views[number]);
    ASSERT_EQ(ordered, sorted);
  }
  EXPECT_TRUE(natural_order({}).empty());
}

TEST(NaturalOrder, IsThatOfNaturalLessForManyNamesWithLongBeginningsInCommon) {
  constexpr std::string_view kWords[] = {"model.layers.",     "experts.", "0", "7", "07", "12", "120", ".",
                                         "mlp.up_proj.weight"};
  std::mt19937 random(3);
  for (const std::size_t count : {30u, 500u, 6000u}) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < count; ++i) {
      std::string name = random() % 2 == 0 ? "model.layers.3.mlp.experts." : "model.layers.12.mlp.experts.";
      for (auto length = random() % 6; length > 0; --length) name += kWords[random() % std::size(kWords)];
      names.push_back(name);
    }
    const std::vector<std::string_view> views(names.begin(), names.end());
    std::vector<std::size_t> sorted(count);
    std::iota(sorted.begin(), sorted.end(), std::size_t{0});
    std::ranges::stable_sort(sorted, [&](std::size_t a, std::size_t b) { return natural_less(views[a], views[b]); });
    ASSERT_EQ(natural_order(views), sorted);
  }
}

TEST(NaturalOrder, KeepsNamesThatAreInOrderAndEqualOnesWhereTheyAre) {
  const std::vector<std::string_view> sorted = {"a.2", "a.10", "b"}, twice = {"b", "a", "b", "a"};
  EXPECT_EQ(natural_order(sorted), (std::vector<std::size_t>{0, 1, 2}));
  EXPECT_EQ(natural_order(twice), (std::vector<std::size_t>{1, 3, 0, 2}));
}

TEST(GlobMatch, FollowsTheShell) {
  struct Case {
    const char *pattern, *text;
    bool matches;
  };
  const Case cases[] = {
      {"", "", true},
      {"", "a", false},
      {"*", "", true},
      {"*", "any.thing/at all", true},
      {"layers.*.weight", "layers.0.attn.weight", true},
      {"layers.*.weight", "layers.0.bias", false},
      {"*.weight", "weight", false},
      {"a?c", "abc", true},
      {"a?c", "ac", false},
      {"layers.[0-3].w", "layers.2.w", true},
      {"layers.[0-3].w", "layers.4.w", false},
      {"layers.[!0-3].w", "layers.4.w", true},
      {"layers.[^0-3].w", "layers.2.w", false},
      {"[]]", "]", true},
      {"[!]]", "a", true},
      {"[!]]", "]", false},
      {"[a-]", "-", true},
      {"[abc", "[abc", true},
      {"[", "[", true},
      {"[]", "[]", true},
      {"a**b", "aXb", true},
      {"*a*b*c", "xxaxxbxxc", true},
      {"*a*b*c", "xxaxxcxxb", false},
      {"a*", "a", true},
      {"a", "A", false},
      {"[\x80-\xff]", "\xc3", true},
  };
  for (const auto& [pattern, text, matches] : cases)
    EXPECT_EQ(glob_match(pattern, text), matches) << pattern << " on " << text;
}

TEST(GlobMatch, HasNoExponentialCase) {
  std::string pattern;
  for (int i = 0; i < 100; ++i) pattern += "a*";
  const auto start = std::chrono::steady_clock::now();
  EXPECT_FALSE(glob_match(pattern + "b", std::string(10'000, 'a')));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(1));
}

}  // namespace
}  // namespace ballast
