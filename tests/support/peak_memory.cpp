#include "support/peak_memory.hpp"

#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace ballast::test {
namespace {

std::size_t peak_so_far() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::size_t>(usage.ru_maxrss) * 1024;
}

}  // namespace

std::size_t peak_memory_of(const std::function<void()>& work) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  work();
  return 0;
#endif
  malloc_trim(0);  // otherwise the work would reuse freed memory that malloc still holds
  void* const shared = mmap(nullptr, sizeof(std::size_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  EXPECT_NE(shared, MAP_FAILED);
  auto* const grown = static_cast<std::size_t*>(shared);
  const pid_t child = fork();
  if (child == 0) {
    const std::size_t before = peak_so_far();
    work();
    *grown = peak_so_far() - before;
    _exit(0);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << "the work did not come to its end";
  const std::size_t result = *grown;
  munmap(shared, sizeof(std::size_t));
  return result;
}

}  // namespace ballast::test
