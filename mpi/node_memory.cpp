#include "node_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <random>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "packing.hpp"

namespace ballast::mpi {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd) noexcept : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int get() const noexcept { return fd_; }
  explicit operator bool() const noexcept { return fd_ >= 0; }

 private:
  int fd_;
};

std::string random_name() {
  std::random_device random;
  return fmt::format("/ballast-{}-{:08x}{:08x}", getpid(), random(), random());
}

// Takes the memory at once: if there is too little of it, this fails, and no later write to a page does.
bool reserve(int fd, std::uint64_t size) {
  int error = EINTR;
  while (error == EINTR) error = posix_fallocate(fd, 0, static_cast<off_t>(size));
  return error == 0;
}

std::shared_ptr<const NodeMemory> mapped(int fd, std::uint64_t size) {
  void* const begin = mmap(nullptr, static_cast<std::size_t>(size), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (begin == MAP_FAILED) return nullptr;
  return std::make_shared<const NodeMemory>(static_cast<std::byte*>(begin), static_cast<std::size_t>(size));
}

// Whether it worked everywhere.
bool agree(const Communicator& node, bool mine) { return node.largest(mine ? 0 : 1) == 0; }

}  // namespace

NodeMemory::~NodeMemory() { munmap(begin_, size_); }

void NodeMemory::protect() const noexcept { mprotect(begin_, size_, PROT_READ); }

std::shared_ptr<const NodeMemory> share_memory(const Communicator& node, std::uint64_t size) {
  if (size == 0) return nullptr;
  const bool is_first = node.rank() == 0;
  Packer packer;
  const std::string name = is_first ? random_name() : std::string();
  const Descriptor own(is_first ? shm_open(name.c_str(), O_RDWR | O_CREAT | O_EXCL, S_IRUSR | S_IWUSR) : -1);
  const bool is_made = own && ftruncate(own.get(), static_cast<off_t>(size)) == 0;
  packer.text(is_made ? name : std::string());

  const Bytes sent = node.broadcast(packer.take());
  const std::string found = Unpacker(sent).text();
  std::shared_ptr<const NodeMemory> memory;
  if (is_first) {
    if (is_made) memory = mapped(own.get(), size);
  } else if (!found.empty()) {
    const Descriptor other(shm_open(found.c_str(), O_RDWR, 0));
    if (other) memory = mapped(other.get(), size);
  }
  const bool all_have_it = agree(node, memory != nullptr);
  // The name is gone before the memory is taken, which lasts: whoever is killed meanwhile leaves nothing behind.
  if (own) shm_unlink(name.c_str());
  if (!all_have_it) return nullptr;
  return agree(node, !is_first || reserve(own.get(), size)) ? memory : nullptr;
}

}  // namespace ballast::mpi
