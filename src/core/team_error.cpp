#include "core/team_error.hpp"

#include <new>
#include <optional>
#include <string>

namespace ballast {
namespace {

void add_optional(Message& message, const std::optional<std::string>& text) {
  message.number(text ? 1 : 0).text(text.value_or(""));
}

// With its remedies as remedies, so that whoever shows it words them.
std::string raw_text(const Advice& advice) { return advice.text(Advice::mention); }

}  // namespace

Error error_for_others(const std::exception_ptr& exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const Error& error) {
    return error;
  } catch (const std::bad_alloc&) {
    return Error(Errc::limit, "out of memory");
  } catch (const std::exception& error) {
    return Error(Errc::io, error.what());
  } catch (...) {
    return Error(Errc::cancelled, "stopped");
  }
}

void add_error(Message& message, const Error& error) {
  message.number(static_cast<std::uint64_t>(error.code())).text(error.message()).text(error.where());
  message.number(error.offset() ? 1 : 0).number(error.offset().value_or(0));
  add_optional(message, error.name());
  message.number(static_cast<std::uint64_t>(error.system_code())).text(raw_text(error.hint()));
}

Error read_error(Cursor& in) {
  const std::uint64_t code = in.u64("code");
  if (code >= all_errcs().size()) throw Error(Errc::malformed, "an unknown kind of error came from another process");
  Error error(static_cast<Errc>(code), std::string(read_text(in)));
  error.in(read_text(in));
  const bool has_offset = in.u64("flag") != 0;
  const std::uint64_t offset = in.u64("offset");
  if (has_offset) error.at_byte(offset);
  const bool has_name = in.u64("flag") != 0;
  const std::string_view name = read_text(in);
  if (has_name) error.about(name);
  error.of_system(static_cast<int>(in.u64("system code")));
  return error.hint(std::string(read_text(in)));
}

}  // namespace ballast
