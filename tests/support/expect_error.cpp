#include "support/expect_error.hpp"

#include <string>

namespace ballast::test {

testing::AssertionResult is_error(const std::optional<Error>& error, Errc code, std::string_view text) {
  if (!error) return testing::AssertionFailure() << "nothing was thrown";
  if (error->code() == code && std::string_view(error->what()).find(text) != std::string_view::npos)
    return testing::AssertionSuccess();
  return testing::AssertionFailure() << info(error->code()).name << ": " << error->what()
                                     << "\nwhere this was expected:\n"
                                     << info(code).name << ": " << text;
}

testing::AssertionResult is_error_at(const std::optional<Error>& error, Errc code, std::string_view text,
                                     std::optional<std::uint64_t> byte) {
  const auto kind = is_error(error, code, text);
  if (!kind || error->offset() == byte) return kind;
  const auto name = [](std::optional<std::uint64_t> b) { return b ? "byte " + std::to_string(*b) : "no byte"; };
  return testing::AssertionFailure() << error->what() << "\nnames " << name(error->offset()) << " instead of "
                                     << name(byte);
}

testing::AssertionResult has_hint(const std::optional<Error>& error, std::string_view hint) {
  if (!error) return testing::AssertionFailure() << "nothing was thrown";
  if (error->hint().text().find(hint) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << error->what() << "\nhas the hint \"" << error->hint().text()
                                     << "\" instead of \"" << hint << '"';
}

}  // namespace ballast::test
