// The few helpers for POSIX that this folder needs: a descriptor that closes itself, calls that survive signals, errors
// that say what the system said.
#pragma once

#include <sys/types.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <ballast/error.hpp>

namespace ballast::io {

class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) noexcept : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(other.release()) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept;
  ~UniqueFd();

  int get() const noexcept { return fd_; }
  explicit operator bool() const noexcept { return fd_ >= 0; }
  int release() noexcept;

 private:
  int fd_ = -1;
};

// Repeats a call for as long as a signal interrupts it.
template <class Call>
auto retry(Call call) {
  for (;;) {
    const auto result = call();
    if (result != -1 || errno != EINTR) return result;
  }
}

// "cannot be opened: permission denied", as Errc::not_found or Errc::io, with a hint if there is one.
Error system_error(std::string_view what, int error);

// Writes all bytes, in as many calls as that takes. Returns errno, or 0.
int write_all_at(int fd, std::uint64_t offset, std::span<const std::byte> bytes);

// Reads as many bytes as the file has; `done` says how many. Returns errno, or 0.
int read_all_at(int fd, std::uint64_t offset, std::span<std::byte> out, std::size_t& done);

// A text that changes when the system is started: what was not on the disk then may be lost. Empty if the system does
// not tell its runs apart.
std::string run_of_the_system();

// Whether anything has that name, including a link that leads nowhere.
bool is_name_taken(const std::string& path);

// "a named pipe"; "a file" for a regular one.
std::string_view kind_of_file(mode_t mode);

}  // namespace ballast::io
