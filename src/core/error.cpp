#include <ballast/error.hpp>

#include <array>
#include <cstddef>
#include <utility>

namespace ballast {
namespace {

// In the order of Errc. The exit codes are those of docs/cli.md; a strict state dict that does not fit is a
// RuntimeError because that is what PyTorch raises for it.
constexpr std::array kErrcs = {
    ErrcInfo{Errc::io, "io", 3, "OSError"},
    ErrcInfo{Errc::not_found, "not_found", 3, "FileNotFoundError"},
    ErrcInfo{Errc::changed, "changed", 3, "OSError"},
    ErrcInfo{Errc::malformed, "malformed", 4, "ValueError"},
    ErrcInfo{Errc::limit, "limit", 4, "ValueError"},
    ErrcInfo{Errc::unsafe, "unsafe", 5, "ValueError"},
    ErrcInfo{Errc::unsupported, "unsupported", 6, "NotImplementedError"},
    ErrcInfo{Errc::mismatch, "mismatch", 1, "RuntimeError"},
    ErrcInfo{Errc::invalid_argument, "invalid_argument", 2, "ValueError"},
    ErrcInfo{Errc::cancelled, "cancelled", 130, "KeyboardInterrupt"},
};

constexpr bool is_in_enum_order() {
  for (std::size_t i = 0; i < kErrcs.size(); ++i)
    if (static_cast<std::size_t>(kErrcs[i].code) != i) return false;
  return kErrcs.size() == static_cast<std::size_t>(Errc::cancelled) + 1;
}
static_assert(is_in_enum_order(), "info() indexes the table by the code");

}  // namespace

std::span<const ErrcInfo> all_errcs() noexcept { return kErrcs; }

const ErrcInfo& info(Errc code) noexcept { return kErrcs[static_cast<std::size_t>(code)]; }

Error::Error(Errc code, std::string message) : code_(code), message_(std::move(message)) { compose(); }
Error::Error(const Error& other) = default;
Error::Error(Error&& other) noexcept = default;
Error& Error::operator=(const Error& other) = default;
Error& Error::operator=(Error&& other) noexcept = default;
Error::~Error() = default;

Error& Error::in(std::string_view where) {
  if (where_.empty()) where_ = where;
  compose();
  return *this;
}

Error& Error::at_byte(std::uint64_t offset) {
  if (!offset_) offset_ = offset;
  compose();
  return *this;
}

Error& Error::about(std::string_view name) {
  if (!name_) name_ = name;
  return *this;
}

Error& Error::of_system(int number) {
  if (system_code_ == 0) system_code_ = number;
  return *this;
}

Error& Error::because(std::exception_ptr cause) {
  if (!cause_) cause_ = std::move(cause);
  return *this;
}

Error& Error::hint(Advice what_to_do) {
  if (hint_.empty()) hint_ = std::move(what_to_do);
  return *this;
}

Error Error::advising(Advice what_to_do) const {
  Error other = *this;
  other.hint_ = std::move(what_to_do);
  return other;
}

Error Error::saying(std::string message) const {
  Error other = *this;
  other.message_ = std::move(message);
  other.compose();
  return other;
}

void Error::compose() {
  what_.clear();
  if (!where_.empty()) what_.append(where_).append(": ");
  what_ += message_;
  if (offset_) what_.append(" (byte ").append(std::to_string(*offset_)).append(")");
}

}  // namespace ballast
