#include "core/glob.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <initializer_list>
#include <string>

namespace ballast {
namespace {

struct GlobCase {
  std::string pattern, name;
  bool matches;
};

void check_globs(std::initializer_list<GlobCase> cases) {
  for (const auto& [pattern, name, matches] : cases)
    EXPECT_EQ(glob_match(pattern, name), matches) << pattern << " on " << name;
}

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

TEST(Glob, TakesOneOfSeveralPatterns) {
  check_globs({
      {"{a,b}", "a", true},
      {"{a,b}", "b", true},
      {"{a,b}", "c", false},
      {"{a,b}", "", false},
      {"{a,b}", "{a,b}", false},
      {"x{a,b{c,d}}y", "xay", true},
      {"x{a,b{c,d}}y", "xbdy", true},
      {"x{a,b{c,d}}y", "xby", false},
      {"{,model.}embed", "embed", true},
      {"{,model.}embed", "model.embed", true},
      {"{*.weight,b*}", "a.weight", true},
      {"{*.weight,b*}", "bias", true},
      {"*.{weight,bias}", "a.b.bias", true},
      {"*.{weight,bias}", "a.b.bias2", false},
      {"{a,b}*{c,d}", "axxd", true},
      {"{[a,b],c}", ",", true},
      {"{?,ab}", "z", true},
      {"{a,b,}{,c}", "", true},
      {"{,}", "", true},
  });
}

TEST(Glob, TakesBracesThatAreNoChoiceAsTheyAre) {
  check_globs({
      {"{a}", "{a}", true},
      {"{a}", "a", false},
      {"{", "{", true},
      {"}", "}", true},
      {"{}", "{}", true},
      {"{a,b", "{a,b", true},
      {"a,b", "a,b", true},
      {"{a,{b,c}", "{a,b", true},
      {"{{a,b}}", "{a}", true},
      {"{a,b}}", "a}", true},
      {"[{a,b}", "[a", true},
      {"{[a,b}", "{[a,b}", false},
      {"{[a,b}", "[a", true},
      {"{a..b}", "{a..b}", true},
      {"{1..}", "{1..}", true},
      {"{01..03}", "{01..03}", true},
  });
}

TEST(Glob, TakesWhatFollowsABackslashAsItIs) {
  check_globs({
      {R"(\{a,b\})", "{a,b}", true},
      {R"({a\,b,c})", "a,b", true},
      {R"({a\,b,c})", "a", false},
      {R"(\*)", "*", true},
      {R"(\*)", "a", false},
      {R"(\[a])", "[a]", true},
      {R"(\?)", "a", false},
      {R"(a\b)", R"(a\b)", true},
      {R"(\\)", R"(\)", true},
      {"\\", "\\", true},
      {R"([\]])", R"(\])", true},
  });
}

TEST(Glob, TakesANumberOfARange) {
  check_globs({
      {"layers.{0..31}.w", "layers.31.w", true},
      {"layers.{0..31}.w", "layers.32.w", false},
      {"layers.{0..31}.w", "layers.07.w", false},
      {"{3..0}", "2", true},
      {"{0..3,7,a}", "7", true},
      {"{0..3,7,a}", "3", true},
      {"{0..3,7,a}", "a", true},
      {"{0..3,7,a}", "5", false},
      {"{0..3,{7..8,x}}", "8", true},
      {"1{0..9}", "15", true},
      {"{5..5}", "5", true},
      {"{1..999999999999999999}", "999999999999999999", true},
      {"{1..999999999999999999}", "0", false},
      {"{1..1000000000000000000}", "5", false},
  });
  for (unsigned low = 0; low < 130; low += 3) {
    for (unsigned high = low; high < 1'200; high += 97) {
      const Glob glob("{" + std::to_string(low) + ".." + std::to_string(high) + "}");
      for (unsigned number = 0; number < 1'300; ++number)
        ASSERT_EQ(glob.matches(std::to_string(number)), low <= number && number <= high) << low << ' ' << high;
    }
  }
}

TEST(Glob, HasNoPatternThatBlowsUp) {
  std::string many, nested, open(100'000, '{'), sets(100'000, '[');
  for (int i = 0; i < 20'000; ++i) many += "{a,b}";
  nested = std::string(20'000, '{');
  for (int i = 0; i < 20'000; ++i) nested += ",a}";
  std::string stars;
  for (int i = 0; i < 200; ++i) stars += "{a*,*a}";
  const double seconds = seconds_of([&] {
    EXPECT_FALSE(glob_match(many, std::string(300, 'a')));
    EXPECT_TRUE(glob_match(many, std::string(10'000, 'b') + std::string(10'000, 'a')));
    EXPECT_FALSE(glob_match(nested, std::string(300, 'a')));
    EXPECT_TRUE(glob_match(nested, "a"));
    EXPECT_TRUE(glob_match(open, open));
    EXPECT_TRUE(glob_match(sets, sets));
    EXPECT_FALSE(glob_match(stars + "b", std::string(1'000, 'a')));
  });
  EXPECT_LT(seconds, 20);
}

TEST(Glob, KnowsWhatHasWildcards) {
  for (const char* pattern : {"*", "a?", "[a]", "{a,b}", "\\*"}) EXPECT_TRUE(has_wildcards(pattern)) << pattern;
  for (const char* pattern : {"", "model.norm.weight", "a]", "a}", "a,b"}) EXPECT_FALSE(has_wildcards(pattern));
}

}  // namespace
}  // namespace ballast
