// The temporary file of another process's sink. That process sizes the file, keeps it, gives it its name, and holds the
// lock that says that its writer lives; here it is only written to.

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

#include "io/posix.hpp"
#include "io/sink.hpp"
#include "io/written_file.hpp"

namespace ballast::io {
namespace {

UniqueFd open_joined(const std::string& temporary) {
  UniqueFd fd(retry([&] { return open(temporary.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC); }));
  if (fd) return fd;
  const bool is_missing = errno == ENOENT;
  Error failure = system_error("cannot be opened to be written together", errno);
  if (is_missing)
    failure.hint("all processes of a job must see the same files: write to a file system that they share");
  throw failure;
}

class JoinedFile final : public WrittenFile {
 public:
  JoinedFile(const std::string& path, const std::string& temporary, bool durable) try
      : WrittenFile(path, durable), fd_(open_joined(temporary)) {
  } catch (Error& failure) {
    failure.in(path);
    throw;
  }

  void reserve(std::uint64_t size_bytes) override { size_ = size_bytes; }
  void sync() override {
    WrittenFile::sync();
    if (durable_) ask_for_late_failures();
  }
  void commit() override {}

 private:
  int fd() const noexcept override { return fd_.get(); }

  UniqueFd fd_;
};

}  // namespace

std::unique_ptr<Sink> join_file(const std::string& path, const std::string& temporary, bool durable) {
  return std::make_unique<JoinedFile>(path, temporary, durable);
}

}  // namespace ballast::io
