#include <ballast/error.hpp>

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace ballast {
namespace {

TEST(Error, SaysWhereWhatAndAtWhichByte) {
  Error error(Errc::malformed, "tensor \"w\" ends at byte 16 but the data has 12 bytes");
  EXPECT_STREQ(error.what(), "tensor \"w\" ends at byte 16 but the data has 12 bytes");
  error.at_byte(23).in("model.safetensors").hint("download it again");
  EXPECT_STREQ(error.what(), "model.safetensors: tensor \"w\" ends at byte 16 but the data has 12 bytes (byte 23)");
  EXPECT_EQ(error.hint().text(), "download it again");
}

TEST(Error, KeepsTheFactsOfTheInnermostLayer) {
  Error error(Errc::io, "cannot be read");
  error.in("inner").at_byte(1).hint("first");
  error.in("outer").at_byte(2).hint("second");
  EXPECT_EQ(error.where(), "inner");
  EXPECT_EQ(error.offset(), 1u);
  EXPECT_EQ(error.hint().text(), "first");
}

TEST(Error, KnowsTheNameTheSystemsNumberAndTheCause) {
  Error error(Errc::not_found, "no tensor is called \"w\"");
  EXPECT_EQ(error.name(), std::nullopt);
  EXPECT_EQ(error.system_code(), 0);
  EXPECT_EQ(error.cause(), nullptr);
  error.about("w").of_system(2).because(std::make_exception_ptr(1));
  error.about("outer").of_system(3).because(nullptr);
  EXPECT_EQ(error.name(), "w");
  EXPECT_EQ(error.system_code(), 2);
  EXPECT_THROW(std::rethrow_exception(error.cause()), int);
}

TEST(Error, SayingSomethingElseKeepsEveryFact) {
  const Error inner = Error(Errc::io, "cannot be read")
                          .in("a.pt")
                          .at_byte(7)
                          .about("w")
                          .of_system(5)
                          .because(std::make_exception_ptr(1))
                          .hint("try again");
  const Error outer = inner.saying("tensor \"w\": " + inner.message());
  EXPECT_STREQ(outer.what(), "a.pt: tensor \"w\": cannot be read (byte 7)");
  EXPECT_EQ(outer.code(), Errc::io);
  EXPECT_EQ(outer.name(), "w");
  EXPECT_EQ(outer.system_code(), 5);
  EXPECT_EQ(outer.cause(), inner.cause());
  EXPECT_EQ(outer.hint().text(), "try again");
}

TEST(Error, AdvisingSomethingElseKeepsEveryFact) {
  const Error inner = Error(Errc::io, "cannot be read").in("a.pt").at_byte(7).about("w").hint("try again");
  const Error outer = inner.advising("give up");
  EXPECT_STREQ(outer.what(), inner.what());
  EXPECT_EQ(outer.name(), "w");
  EXPECT_EQ(outer.hint().text(), "give up");
}

TEST(Error, CanBeThrownWithItsFacts) {
  try {
    throw Error(Errc::limit, "too many").at_byte(0);
  } catch (const std::exception& error) {
    EXPECT_STREQ(error.what(), "too many (byte 0)");
  }
}

TEST(Errc, HasTheDocumentedExitCodes) {
  const std::pair<Errc, int> expected[] = {
      {Errc::io, 3},          {Errc::not_found, 3}, {Errc::changed, 3},
      {Errc::malformed, 4},   {Errc::limit, 4},     {Errc::unsafe, 5},
      {Errc::unsupported, 6}, {Errc::mismatch, 1},  {Errc::invalid_argument, 2},
      {Errc::cancelled, 130},
  };
  EXPECT_EQ(std::size(expected), all_errcs().size());
  for (const auto& [code, exit_code] : expected) {
    EXPECT_EQ(info(code).code, code);
    EXPECT_EQ(info(code).exit_code, exit_code) << info(code).name;
  }
}

TEST(Errc, HasANameOfItsOwnAndAPythonException) {
  std::set<std::string_view> names;
  for (const auto& errc : all_errcs()) {
    EXPECT_TRUE(names.insert(errc.name).second) << errc.name;
    EXPECT_FALSE(errc.python_exception.empty()) << errc.name;
  }
}

}  // namespace
}  // namespace ballast
