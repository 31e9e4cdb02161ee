// Error: the one exception that Ballast throws, and its kinds.
//
// A layer that catches an Error adds the fact that it knows (which file, which byte) and rethrows it. std::bad_alloc
// passes through the library untouched. An Error owns its texts, so it may be kept and handed to another thread.
#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <ballast/remedy.hpp>

namespace ballast {

enum class Errc : std::uint8_t {
  io,                // the system could not read or write
  not_found,         // no such file, tensor or key
  changed,           // a file changed or shrank while it was being read
  malformed,         // the bytes break the rules of their format
  limit,             // well-formed, but over a field of Limits
  unsafe,            // names something dangerous, or leads outside its folder
  unsupported,       // understood, but not something that Ballast (or the target format) can do
  mismatch,          // two things that must agree do not
  invalid_argument,  // the caller asked for something that makes no sense
  cancelled,         // the progress callback said stop
};

// What other programs see of each kind.
struct ErrcInfo {
  Errc code;
  std::string_view name;
  int exit_code;
  std::string_view python_exception;
};

std::span<const ErrcInfo> all_errcs() noexcept;
const ErrcInfo& info(Errc code) noexcept;

class Error : public std::exception {
 public:
  Error(Errc code, std::string message);
  Error(const Error& other);
  Error(Error&& other) noexcept;
  Error& operator=(const Error& other);
  Error& operator=(Error&& other) noexcept;
  ~Error() override;

  // A layer adds the facts that it knows; the innermost fact wins.
  Error& in(std::string_view where);
  Error& at_byte(std::uint64_t offset);
  Error& hint(Advice what_to_do);

  Errc code() const noexcept { return code_; }
  const std::string& message() const noexcept { return message_; }
  const std::string& where() const noexcept { return where_; }  // a path, "model.pt!/data.pkl", a URL; empty if unknown
  std::optional<std::uint64_t> offset() const noexcept { return offset_; }
  const Advice& hint() const noexcept { return hint_; }

  // "model.safetensors: tensor "w" ends at byte 16 but the data has 12 bytes (byte 23)"; without the hint.
  const char* what() const noexcept override { return what_.c_str(); }

 private:
  void compose();

  Errc code_;
  std::string message_, where_, what_;
  Advice hint_;
  std::optional<std::uint64_t> offset_;
};

}  // namespace ballast
