// Hints name remedies; whoever shows a hint brings the words.
#include "core/remedy.hpp"

#include <gtest/gtest.h>

#include <set>

#include <ballast/error.hpp>

namespace ballast {
namespace {

std::string number_of(Remedy remedy, std::string_view argument) {
  return "<" + std::to_string(static_cast<int>(remedy)) + ":" + std::string(argument) + ">";
}

TEST(Advice, IsWordedInTermsOfTheLibraryUnlessSomebodyBringsOtherWords) {
  const Advice advice = "cast it with " + mention(Remedy::cast, "F16") + ", or " + leave_it_out();
  EXPECT_EQ(advice.text(), "cast it with cast() to F16, or leave it out with Selection::exclude");
  const auto words = [](Remedy remedy, std::string_view argument) {
    return remedy == Remedy::cast ? "--dtype " + std::string(argument) : std::string("--exclude");
  };
  EXPECT_EQ(advice.text(words), "cast it with --dtype F16, or leave it out with --exclude");
}

TEST(Advice, WithoutARemedyIsItsText) {
  EXPECT_EQ(Advice("download it again").text(), "download it again");
  EXPECT_TRUE(Advice().empty());
  EXPECT_EQ(Advice().text(), "");
}

TEST(Advice, MentionsEveryRemedyByAWordOfItsOwn) {
  std::set<std::string> names;
  for (std::size_t i = 0; i < kRemedyCount; ++i) {
    const auto remedy = static_cast<Remedy>(i);
    EXPECT_EQ(Advice(mention(remedy, "x")).text(number_of), number_of(remedy, "x"));
    names.insert(name_in_library(remedy, ""));
  }
  EXPECT_EQ(names.size(), kRemedyCount);
}

TEST(Advice, WithMarksThatMeanNothingIsShownAsItIs) {
  for (const std::string text : {"a\x1a", "a\x1a\x1a", "a\x1az\x1a", "a\x1a!b\x1a", "\x1a"}) {
    EXPECT_EQ(Advice(text).text(), text);
  }
}

TEST(Error, KeepsTheRemediesOfItsHintWhenALayerRethrowsIt) {
  const Error inner = Error(Errc::io, "already exists").hint(mention(Remedy::overwrite) + " overwrites it");
  const Error outer = Error(Errc::io, "cannot write").hint(inner.hint());
  EXPECT_EQ(outer.hint().text(number_of), number_of(Remedy::overwrite, "") + " overwrites it");
}

}  // namespace
}  // namespace ballast
