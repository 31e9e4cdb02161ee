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
  Error& about(std::string_view name);
  Error& of_system(int number);
  Error& because(std::exception_ptr cause);
  Error& hint(Advice what_to_do);

  // The same error with another message: "tensor "w": " + message(), with every fact that is known.
  Error saying(std::string message) const;
  // The same error with another hint.
  Error advising(Advice what_to_do) const;

  Errc code() const noexcept { return code_; }
  const std::string& message() const noexcept { return message_; }
  const std::string& where() const noexcept { return where_; }  // a path, "model.pt!/data.pkl", a URL; empty if unknown
  std::optional<std::uint64_t> offset() const noexcept { return offset_; }
  const Advice& hint() const noexcept { return hint_; }

  // The tensor, the key or the adapter that the error is about: none if it is about a file, and empty if it is about
  // several. A name that is not found is a KeyError in Python; a file that is not found is a FileNotFoundError.
  const std::optional<std::string>& name() const noexcept { return name_; }

  int system_code() const noexcept { return system_code_; }  // EACCES, EEXIST, …; 0 if the system has no say
  const std::exception_ptr& cause() const noexcept { return cause_; }  // what a caller's own Source threw, or null

  // "model.safetensors: tensor "w" ends at byte 16 but the data has 12 bytes (byte 23)"; without the hint.
  const char* what() const noexcept override { return what_.c_str(); }

 private:
  void compose();

  Errc code_;
  std::string message_, where_, what_;
  Advice hint_;
  std::optional<std::uint64_t> offset_;
  std::optional<std::string> name_;
  std::exception_ptr cause_;
  int system_code_ = 0;
};

}  // namespace ballast
