// A library for LD_PRELOAD that makes the n-th call that changes files fail, so that a test can try every n.
//
// Counted are the calls of the table at the end: those that create, size, write, sync, lock, rename, remove or close a
// file that is open for writing, and syncs of folders. Nothing that only reads is counted, nor anything on the three
// standard streams.
//
//   BALLAST_FAIL_AT=n           which call, from 1
//   BALLAST_FAIL_CALL=pwrite    counts only calls whose names begin so
//   BALLAST_FAIL_ERRNO=ENOSPC   how it fails (EIO ENOSPC EDQUOT EINTR EROFS EOPNOTSUPP); or
//   BALLAST_FAIL_SHORT=1        a write takes only half of its bytes, and other calls succeed; or
//   BALLAST_FAIL_KILL=1         the process is killed just before the call
//   BALLAST_FAIL_LOG=path       gets a line for each counted call, "! " before the one that failed
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdlib>

namespace {

std::atomic<long> calls = 0;

long number_from(const char* variable) {
  const char* text = getenv(variable);
  return text != nullptr ? atol(text) : 0;
}

int wanted_errno() {
  struct Name {
    const char* name;
    int value;
  };
  constexpr Name kNames[] = {{"EIO", EIO},     {"ENOSPC", ENOSPC}, {"EDQUOT", EDQUOT},
                             {"EINTR", EINTR}, {"EROFS", EROFS},   {"EOPNOTSUPP", EOPNOTSUPP}};
  const char* wanted = getenv("BALLAST_FAIL_ERRNO");
  for (const auto& [name, value] : kNames)
    if (wanted != nullptr && strcmp(wanted, name) == 0) return value;
  return EIO;
}

// Writes by system calls that are not counted.
void log(const char* call, bool fails) {
  const char* path = getenv("BALLAST_FAIL_LOG");
  if (path == nullptr) return;
  const long fd = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  char line[64];
  const int size = snprintf(line, sizeof line, "%s%s\n", fails ? "! " : "", call);
  syscall(SYS_write, fd, line, size);
  syscall(SYS_close, fd);
}

// Counts a call, and returns whether it is the one that is to fail.
bool is_its_turn(const char* call) {
  if (const char* only = getenv("BALLAST_FAIL_CALL"); only != nullptr && strncmp(call, only, strlen(only)) != 0)
    return false;
  const int errno_before = errno;
  const bool fails = ++calls == number_from("BALLAST_FAIL_AT");
  log(call, fails);
  if (fails && getenv("BALLAST_FAIL_KILL") != nullptr) syscall(SYS_kill, getpid(), SIGKILL);
  errno = errno_before;
  return fails;
}

bool is_short() { return getenv("BALLAST_FAIL_SHORT") != nullptr; }

bool is_open_for_writing(int fd) {
  if (fd <= STDERR_FILENO) return false;
  const int flags = fcntl(fd, F_GETFL);
  return flags >= 0 && (flags & O_ACCMODE) != O_RDONLY;
}

bool is_a_folder(int fd) {
  struct stat found = {};
  return fstat(fd, &found) == 0 && S_ISDIR(found.st_mode);
}

bool is_counted_open(int flags) { return (flags & O_ACCMODE) != O_RDONLY; }

template <class Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

template <class Result>
Result fail() {
  errno = wanted_errno();
  return static_cast<Result>(-1);
}

// Does a call, or only fails if it is the one that is to fail.
template <class Result, class... Parameters>
Result maybe(bool is_counted, const char* name, Parameters... arguments) {
  auto* const call = real<Result(Parameters...)>(name);
  if (!is_counted || !is_its_turn(name) || is_short()) return call(arguments...);
  return fail<Result>();
}

// Does a write, which may also be short.
template <class... Position>
ssize_t maybe_write(const char* name, int fd, const void* bytes, size_t size, Position... position) {
  auto* const call = real<ssize_t(int, const void*, size_t, Position...)>(name);
  if (!is_open_for_writing(fd) || !is_its_turn(name)) return call(fd, bytes, size, position...);
  if (is_short()) return call(fd, bytes, size - size / 2, position...);
  return fail<ssize_t>();
}

bool has_mode(int flags) { return (flags & (O_CREAT | O_TMPFILE)) != 0; }

}  // namespace

#define OPEN(name)                                                       \
  int name(const char* path, int flags, ...) {                           \
    va_list arguments;                                                   \
    va_start(arguments, flags);                                          \
    const mode_t mode = has_mode(flags) ? va_arg(arguments, mode_t) : 0; \
    va_end(arguments);                                                   \
    return maybe<int>(is_counted_open(flags), #name, path, flags, mode); \
  }
#define OPENAT(name)                                                             \
  int name(int folder, const char* path, int flags, ...) {                       \
    va_list arguments;                                                           \
    va_start(arguments, flags);                                                  \
    const mode_t mode = has_mode(flags) ? va_arg(arguments, mode_t) : 0;         \
    va_end(arguments);                                                           \
    return maybe<int>(is_counted_open(flags), #name, folder, path, flags, mode); \
  }

#pragma GCC visibility push(default)
extern "C" {

OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)

int fallocate(int fd, int mode, off_t offset, off_t size) {
  return maybe<int>(true, "fallocate", fd, mode, offset, size);
}
int ftruncate(int fd, off_t size) noexcept { return maybe<int>(true, "ftruncate", fd, size); }
int fchmod(int fd, mode_t mode) noexcept { return maybe<int>(true, "fchmod", fd, mode); }
int flock(int fd, int operation) noexcept { return maybe<int>(true, "flock", fd, operation); }
int fsync(int fd) {
  auto* const call = real<int(int)>("fsync");
  return is_its_turn(is_a_folder(fd) ? "fsync folder" : "fsync") && !is_short() ? fail<int>() : call(fd);
}
int fdatasync(int fd) { return maybe<int>(true, "fdatasync", fd); }

ssize_t write(int fd, const void* bytes, size_t size) { return maybe_write("write", fd, bytes, size); }
ssize_t pwrite(int fd, const void* bytes, size_t size, off_t at) { return maybe_write("pwrite", fd, bytes, size, at); }
ssize_t pwrite64(int fd, const void* bytes, size_t size, off64_t at) {
  return maybe_write("pwrite64", fd, bytes, size, at);
}
ssize_t copy_file_range(int from, off64_t* from_at, int to, off64_t* to_at, size_t size, unsigned flags) {
  return maybe<ssize_t>(true, "copy_file_range", from, from_at, to, to_at, size, flags);
}

int rename(const char* from, const char* to) noexcept { return maybe<int>(true, "rename", from, to); }
int renameat(int from_folder, const char* from, int to_folder, const char* to) noexcept {
  return maybe<int>(true, "renameat", from_folder, from, to_folder, to);
}
int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) noexcept {
  return maybe<int>(true, "renameat2", from_folder, from, to_folder, to, flags);
}
int linkat(int from_folder, const char* from, int to_folder, const char* to, int flags) noexcept {
  return maybe<int>(true, "linkat", from_folder, from, to_folder, to, flags);
}
int unlink(const char* path) noexcept { return maybe<int>(true, "unlink", path); }
int unlinkat(int folder, const char* path, int flags) noexcept {
  return maybe<int>(true, "unlinkat", folder, path, flags);
}

// A close that fails has closed the file all the same.
int close(int fd) {
  const bool fails = is_open_for_writing(fd) && is_its_turn("close") && !is_short();
  const int result = real<int(int)>("close")(fd);
  return fails ? fail<int>() : result;
}

}  // extern "C"
