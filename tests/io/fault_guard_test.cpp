#include "io/fault_guard.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <stdexcept>
#include <thread>
#include <vector>

#include "builders/temp_dir.hpp"

namespace ballast::io {
namespace {

const auto kPage = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));

// Four mapped pages, of which only the first is still in the file.
class ShrunkMap {
 public:
  ShrunkMap() {
    const std::string path = dir_.write("f", std::string(4 * kPage, 'x'));
    const int fd = ::open(path.c_str(), O_RDONLY);
    map_ = static_cast<const std::byte*>(mmap(nullptr, 4 * kPage, PROT_READ, MAP_PRIVATE, fd, 0));
    close(fd);
    EXPECT_EQ(truncate(path.c_str(), static_cast<off_t>(kPage)), 0);
  }
  ~ShrunkMap() { munmap(const_cast<std::byte*>(map_), 4 * kPage); }

  std::span<const std::byte> bytes() const { return {map_, 4 * kPage}; }
  void touch(std::size_t page) const {
    static_cast<void>(*static_cast<const volatile std::byte*>(map_ + page * kPage));
  }

 private:
  test::TempDir dir_;
  const std::byte* map_;
};

TEST(FaultGuard, TellsWhichByteCouldNotBeRead) {
  const ShrunkMap map;
  EXPECT_EQ(fault_while(map.bytes(), [&] { map.touch(0); }), std::nullopt);
  EXPECT_EQ(fault_while(map.bytes(), [&] { map.touch(2); }), 2 * kPage);
  EXPECT_EQ(fault_while(map.bytes().subspan(kPage), [&] { map.touch(2); }), kPage);
}

TEST(FaultGuard, CanBeUsedAgainAndAgain) {
  const ShrunkMap map;
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(fault_while(map.bytes(), [&] { map.touch(1); }), kPage);
}

TEST(FaultGuard, LeavesTheSignalMaskAsItWas) {
  const ShrunkMap map;
  sigset_t before, after;
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  fault_while(map.bytes(), [&] { map.touch(1); });
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  for (int signal = 1; signal < 32; ++signal)
    EXPECT_EQ(sigismember(&before, signal), sigismember(&after, signal)) << signal;
}

TEST(FaultGuard, NestsAndGivesEachFaultToTheGuardThatCoversIt) {
  const ShrunkMap outer, inner;
  bool came_back = false;
  const auto fault = fault_while(outer.bytes(), [&] {
    EXPECT_EQ(fault_while(inner.bytes(), [&] { inner.touch(3); }), 3 * kPage);
    came_back = true;
    fault_while(inner.bytes(), [&] { outer.touch(2); });
    ADD_FAILURE() << "a fault of the outer map ends the outer look";
  });
  EXPECT_TRUE(came_back);
  EXPECT_EQ(fault, 2 * kPage);
  EXPECT_EQ(fault_while(inner.bytes(), [&] { inner.touch(1); }), kPage) << "no stale guard is left behind";
}

TEST(FaultGuard, GuardsEveryThreadForItself) {
  const ShrunkMap map;
  std::vector<std::thread> threads;
  for (std::size_t page = 1; page < 4; ++page)
    threads.emplace_back([&, page] {
      for (int i = 0; i < 200; ++i) ASSERT_EQ(fault_while(map.bytes(), [&] { map.touch(page); }), page * kPage);
    });
  for (auto& thread : threads) thread.join();
}

// Each of these runs in a process of its own, in which the handler has not been installed yet.
class FaultGuardDeathTest : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
  static void use_guard() {
    EXPECT_EQ(fault_while({}, [] {}), std::nullopt);
  }
};

void set_handler(void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  sigaction(SIGBUS, &action, nullptr);
}

TEST_F(FaultGuardDeathTest, LetsARealCrashCrash) {
  const ShrunkMap map;
  const auto crash = [&] {
    set_handler(SIG_DFL);  // not the handler of a sanitizer
    use_guard();
    map.touch(1);
  };
  EXPECT_EXIT(crash(), testing::KilledBySignal(SIGBUS), "");
}

TEST_F(FaultGuardDeathTest, LetsACrashOutsideTheGuardedBytesCrash) {
  const ShrunkMap guarded, other;
  const auto crash = [&] {
    set_handler(SIG_DFL);
    fault_while(guarded.bytes(), [&] { other.touch(1); });
  };
  EXPECT_EXIT(crash(), testing::KilledBySignal(SIGBUS), "");
}

TEST_F(FaultGuardDeathTest, LetsExceptionsThroughAndIsGoneAfterwards) {
  const ShrunkMap map;
  const auto crash = [&] {
    set_handler(SIG_DFL);
    EXPECT_THROW(fault_while(map.bytes(), [] { throw std::runtime_error("look"); }), std::runtime_error);
    map.touch(1);
  };
  EXPECT_EXIT(crash(), testing::KilledBySignal(SIGBUS), "");
}

TEST_F(FaultGuardDeathTest, DiesOfASignalThatWasSent) {
  const ShrunkMap map;
  const auto send = [&] {
    set_handler(SIG_DFL);
    fault_while(map.bytes(), [] { raise(SIGBUS); });
  };
  EXPECT_EXIT(send(), testing::KilledBySignal(SIGBUS), "");
}

TEST_F(FaultGuardDeathTest, DiesOfAFaultThatWasToBeIgnored) {
  const ShrunkMap map;
  const auto crash = [&] {
    set_handler(SIG_IGN);
    use_guard();
    raise(SIGBUS);  // this one can be ignored
    map.touch(1);
  };
  EXPECT_EXIT(crash(), testing::KilledBySignal(SIGBUS), "");
}

TEST_F(FaultGuardDeathTest, PassesOtherFaultsToThePlainHandlerThatWasThereBefore) {
  const ShrunkMap map;
  const auto crash = [&] {
    set_handler([](int signal) { _exit(signal == SIGBUS ? 42 : 1); });
    use_guard();
    map.touch(1);
  };
  EXPECT_EXIT(crash(), testing::ExitedWithCode(42), "");
}

TEST_F(FaultGuardDeathTest, PassesOtherFaultsToTheInformedHandlerThatWasThereBefore) {
  static const std::byte* expected;
  const ShrunkMap map;
  expected = map.bytes().data() + kPage;
  const auto crash = [&] {
    struct sigaction action = {};
    action.sa_flags = SA_SIGINFO;
    action.sa_sigaction = [](int, siginfo_t* info, void* context) {
      _exit(info->si_addr == expected && context != nullptr ? 43 : 1);
    };
    sigaction(SIGBUS, &action, nullptr);
    use_guard();
    map.touch(1);
  };
  EXPECT_EXIT(crash(), testing::ExitedWithCode(43), "");
}

TEST_F(FaultGuardDeathTest, WorksBehindALaterHandlerThatPassesFaultsOn) {
  static struct sigaction ours;
  const ShrunkMap map;
  const auto look_twice = [&] {
    use_guard();
    struct sigaction later = {};
    later.sa_flags = SA_SIGINFO;  // so SIGBUS is blocked while the handler runs
    later.sa_sigaction = [](int signal, siginfo_t* info, void* context) { ours.sa_sigaction(signal, info, context); };
    sigaction(SIGBUS, &later, &ours);
    for (int i = 0; i < 2; ++i)
      if (!fault_while(map.bytes(), [&] { map.touch(1); })) _exit(1);
    _exit(44);
  };
  EXPECT_EXIT(look_twice(), testing::ExitedWithCode(44), "");
}

TEST_F(FaultGuardDeathTest, StandsInFrontOfALaterHandlerIfItShares) {
  const ShrunkMap map;
  const auto look = [&] {
    use_guard();
    share_bus_errors();
    set_handler([](int) { _exit(1); });
    for (int i = 0; i < 2; ++i)
      if (!fault_while(map.bytes(), [&] { map.touch(1); })) _exit(2);
    _exit(45);
  };
  EXPECT_EXIT(look(), testing::ExitedWithCode(45), "");
}

// Python's faulthandler says its word, puts back what was there before it, and sends the signal again.
TEST_F(FaultGuardDeathTest, PassesAForeignFaultOnOnceToALaterHandlerThatPassesItBack) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP()
      << "ThreadSanitizer's own handler stays, and takes the fault again and again instead of ending the process";
#endif
  static struct sigaction before;
  const ShrunkMap map;
  const auto crash = [&] {
    use_guard();
    share_bus_errors();
    struct sigaction later = {};
    later.sa_flags = SA_NODEFER;
    later.sa_handler = [](int signal) {
      static_cast<void>(!write(STDERR_FILENO, "crash!", 6));
      sigaction(signal, &before, nullptr);
      raise(signal);
    };
    sigaction(SIGBUS, &later, &before);
    static_cast<void>(fault_while(map.bytes(), [&] { map.touch(0); }));
    map.touch(1);
  };
  EXPECT_EXIT(crash(), testing::KilledBySignal(SIGBUS), "^crash!$");
}

}  // namespace
}  // namespace ballast::io
