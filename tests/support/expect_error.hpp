// EXPECT_ERROR(expression, Errc::malformed, "ends at byte 16"): the expression throws an Error of this kind, and its
// what() contains the text. EXPECT_ERROR_AT checks the byte too, and EXPECT_HINT checks the hint.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string_view>

#include <ballast/error.hpp>

namespace ballast::test {

// The Error that the call throws; empty if it does not throw.
template <class Call>
std::optional<Error> error_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

testing::AssertionResult is_error(const std::optional<Error>& error, Errc code, std::string_view text);

testing::AssertionResult is_error_at(const std::optional<Error>& error, Errc code, std::string_view text,
                                     std::optional<std::uint64_t> byte);

testing::AssertionResult has_hint(const std::optional<Error>& error, std::string_view hint);

}  // namespace ballast::test

#define BALLAST_ERROR_OF(expression) ::ballast::test::error_of([&] { static_cast<void>(expression); })

#define EXPECT_ERROR(expression, code, text) \
  EXPECT_TRUE(::ballast::test::is_error(BALLAST_ERROR_OF(expression), code, text))

#define EXPECT_ERROR_AT(expression, code, text, byte) \
  EXPECT_TRUE(::ballast::test::is_error_at(BALLAST_ERROR_OF(expression), code, text, byte))

#define EXPECT_HINT(expression, hint) EXPECT_TRUE(::ballast::test::has_hint(BALLAST_ERROR_OF(expression), hint))
