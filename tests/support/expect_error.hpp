// EXPECT_ERROR(expression, Errc::malformed, "ends at byte 16"): the expression throws that kind of Error, with this in
// its what(). EXPECT_ERROR_AT names the byte too, and EXPECT_HINT what the user is told to do.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string_view>

#include <ballast/error.hpp>

namespace ballast::test {

// The Error that a call ends in; nothing where it ends well.
template <class Call>
std::optional<Error> error_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

inline testing::AssertionResult is_error(const std::optional<Error>& error, Errc code, std::string_view text) {
  if (!error) return testing::AssertionFailure() << "nothing was thrown";
  if (error->code() == code && std::string_view(error->what()).find(text) != std::string_view::npos)
    return testing::AssertionSuccess();
  return testing::AssertionFailure() << info(error->code()).name << ": " << error->what()
                                     << "\nwhere this was expected:\n"
                                     << info(code).name << ": " << text;
}

inline testing::AssertionResult is_error_at(const std::optional<Error>& error, Errc code, std::string_view text,
                                            std::optional<std::uint64_t> byte) {
  const auto kind = is_error(error, code, text);
  if (!kind || error->offset() == byte) return kind;
  const auto name = [](std::optional<std::uint64_t> b) { return b ? "byte " + std::to_string(*b) : "no byte"; };
  return testing::AssertionFailure() << error->what() << "\nnames " << name(error->offset()) << " instead of "
                                     << name(byte);
}

inline testing::AssertionResult has_hint(const std::optional<Error>& error, std::string_view hint) {
  if (!error) return testing::AssertionFailure() << "nothing was thrown";
  if (error->hint().find(hint) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << error->what() << "\nhas the hint \"" << error->hint() << "\" instead of \""
                                     << hint << '"';
}

}  // namespace ballast::test

#define BALLAST_ERROR_OF(expression) ::ballast::test::error_of([&] { static_cast<void>(expression); })

#define EXPECT_ERROR(expression, code, text) \
  EXPECT_TRUE(::ballast::test::is_error(BALLAST_ERROR_OF(expression), code, text))

#define EXPECT_ERROR_AT(expression, code, text, byte) \
  EXPECT_TRUE(::ballast::test::is_error_at(BALLAST_ERROR_OF(expression), code, text, byte))

#define EXPECT_HINT(expression, hint) EXPECT_TRUE(::ballast::test::has_hint(BALLAST_ERROR_OF(expression), hint))
