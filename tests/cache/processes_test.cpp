// Many processes want one conversion cache: one of them makes it, while others are cancelled, wait, are killed, or run
// out of space.
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>

#include "support/cache_test.hpp"
#include "support/expect_error.hpp"
#include "support/tensor_values.hpp"

namespace ballast {
namespace {

namespace fs = std::filesystem;
using test::is_from_cache;
using test::kAutomatic;
using test::strided_file;
using test::TorchZip;
namespace py = test::py;

class CacheProcesses : public test::CacheTest {};

TEST_F(CacheProcesses, LeavesNoTraceWhenItIsCancelled) {
  const std::string path = dir.write("model.pt", strided_file());
  OpenOptions options = kAutomatic;
  options.progress = [](const ProgressState&) { return false; };
  EXPECT_ERROR(open(path, options), Errc::cancelled, "cancelled");
  EXPECT_EQ(dir.names(), (std::set<std::string>{"model.pt"}));
  EXPECT_TRUE(list_cache().empty());
}

TEST_F(CacheProcesses, CanBeWaitedForAndTheWaitCancelled) {
  const std::string path = dir.write("model.pt", strided_file());
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_EQ(flock(fd, LOCK_EX), 0);
  OpenOptions options = kAutomatic;
  int waits = 0;
  options.progress = [&](const ProgressState& state) {
    return state.phase != "waiting for another process" || ++waits < 3;
  };
  EXPECT_ERROR(open(path, options), Errc::cancelled, "cancelled");
  EXPECT_EQ(waits, 3);

  std::thread release([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    flock(fd, LOCK_UN);
  });
  EXPECT_TRUE(is_from_cache(open(path, kAutomatic)));
  release.join();
  close(fd);
}

TEST_F(CacheProcesses, IsMadeByOneOfManyThreads) {
  const std::string path = dir.write("model.pt", strided_file());
  std::vector<std::thread> threads;
  std::atomic<int> good = 0;
  for (int i = 0; i < 8; ++i) threads.emplace_back([&] { good += is_from_cache(open(path, kAutomatic)); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 8);
}

// Starts a child process whose exit code is 0 if `work` returns true, 1 if it returns false and 2 if it throws.
template <class Work>
pid_t in_child(const Work& work) {
  const pid_t child = fork();
  if (child != 0) return child;
  try {
    _exit(work() ? 0 : 1);
  } catch (...) {
    _exit(2);
  }
}

int exit_code_of(pid_t child) {
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST_F(CacheProcesses, OpensWithoutACacheIfTheDiskIsFull) {
  const std::string path = dir.write("model.pt", strided_file());
  const pid_t child = in_child([&] {
    const struct rlimit small = {.rlim_cur = 512, .rlim_max = 512};  // the largest file in bytes: smaller than a header
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    const Checkpoint opened = open(path, kAutomatic);
    return !is_from_cache(opened) && test::has_note(opened, "no conversion cache was made") &&
           test::values_of<float>(opened.at("w")) == std::vector<float>{1, 3, 2, 4};
  });
  EXPECT_EQ(exit_code_of(child), 0);
  EXPECT_EQ(dir.names(), (std::set<std::string>{"model.pt"}));
}

// 16 processes open the checkpoint at once, and every third of them is killed at a different moment. The others see all
// of it, and afterwards the folder holds the cache and nothing else.
TEST_F(CacheProcesses, IsWholeForEveryProcessWhateverHappensToTheOthers) {
  constexpr std::int64_t kRows = 1024;
  std::vector<float> values(kRows * kRows);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const std::string data(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  const std::string path = dir.write(
      "model.pt", TorchZip()
                      .object(py::dict(
                          {{"w", py::tensor(py::storage("Float", "0", kRows * kRows), 0, {kRows, kRows}, {1, kRows})}}))
                      .record("0", data)
                      .text());
  const auto sees_all_of_it = [&] {
    const auto seen = test::values_of<float>(open(path, kAutomatic).at("w"));
    for (std::size_t i = 0; i < kRows; ++i)
      for (std::size_t j = 0; j < kRows; ++j)
        if (seen[i * kRows + j] != values[j * kRows + i]) return false;
    return true;
  };
  for (int round = 0; round < 6; ++round) {
    fs::remove(beside());
    std::vector<pid_t> children;
    for (int i = 0; i < 16; ++i) children.push_back(in_child(sees_all_of_it));
    for (std::size_t i = 0; i < children.size(); i += 3) {
      std::this_thread::sleep_for(std::chrono::milliseconds(3 * round + 1));
      kill(children[i], SIGKILL);
    }
    for (std::size_t i = 0; i < children.size(); ++i) {
      const int code = exit_code_of(children[i]);
      EXPECT_TRUE(code == 0 || (i % 3 == 0 && code == 128 + SIGKILL)) << "round " << round << ", code " << code;
    }
    EXPECT_TRUE(is_from_cache(open(path, kAutomatic)));
    EXPECT_EQ(dir.names(), (std::set<std::string>{"model.pt", std::string(".model.pt") + kEnding}));
  }
}

TEST_F(CacheProcesses, RemovesWhatAKilledConversionLeft) {
  const std::string path = dir.write("model.pt", strided_file());
  const std::string left = dir.write("..model.pt" + std::string(kEnding) + ".ballast-abcdefgh.tmp", "half of it");
  EXPECT_TRUE(clear_cache({path}).empty());
  EXPECT_EQ(dir.names(), (std::set<std::string>{"model.pt"}));
}

}  // namespace
}  // namespace ballast
