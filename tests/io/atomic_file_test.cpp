#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "builders/temp_dir.hpp"
#include "io/section.hpp"
#include "io/sink.hpp"
#include "support/expect_error.hpp"
#include "support/root_rights.hpp"

namespace ballast::io {
namespace {

using test::TempDir;

constexpr OutputOptions kForce{.overwrite = true, .durable = false};
constexpr OutputOptions kNew{.overwrite = false, .durable = false};

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

void save(const std::string& path, std::string_view content, const OutputOptions& options) {
  const auto file = create_file(path, options);
  file->reserve(content.size());
  file->write_at(0, bytes_of(content));
  file->commit();
}

mode_t mode_of(const std::string& path) {
  struct stat found = {};
  EXPECT_EQ(lstat(path.c_str(), &found), 0) << path;
  return found.st_mode & 07777;
}

// The name of the one temporary file in a folder.
std::string temp_in(const TempDir& dir) {
  std::string temp;
  for (const auto& name : dir.names())
    if (name.ends_with(".tmp")) temp = name;
  return temp;
}

class Umask {
 public:
  explicit Umask(mode_t mask) : before_(umask(mask)) {}
  ~Umask() { umask(before_); }

 private:
  mode_t before_;
};

TEST(AtomicFile, WritesAtOffsetsAndAppearsOnCommit) {
  const TempDir dir;
  const auto file = create_file(dir / "out");
  file->reserve(10);
  file->write_at(5, bytes_of("world"));
  file->write_at(0, bytes_of("hello"));
  EXPECT_FALSE(dir.names().contains("out"));
  file->commit();
  EXPECT_EQ(dir.read("out"), "helloworld");
  EXPECT_EQ(dir.names(), std::set<std::string>{"out"});
}

TEST(AtomicFile, CanBeEmpty) {
  const TempDir dir;
  save(dir / "out", "", kNew);
  EXPECT_EQ(dir.names(), std::set<std::string>{"out"});
  EXPECT_EQ(dir.read("out"), "");
}

TEST(AtomicFile, IsWrittenByManyThreadsAtOnce) {
  const TempDir dir;
  const auto file = create_file(dir / "out", kNew);
  file->reserve(400'000);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (std::size_t i = 0; i < 100; ++i)
        file->write_at(t * 100'000 + i * 1000, bytes_of(std::string(1000, static_cast<char>('a' + t))));
    });
  for (auto& thread : threads) thread.join();
  file->commit();
  std::string expected;
  for (const char c : {'a', 'b', 'c', 'd'}) expected += std::string(100'000, c);
  EXPECT_EQ(dir.read("out"), expected);
}

TEST(AtomicFile, LeavesNoTraceWhenItIsNotCommitted) {
  const TempDir dir;
  dir.write("out", "old");
  {
    const auto file = create_file(dir / "out", kForce);
    file->reserve(3);
    file->write_at(0, bytes_of("new"));
    EXPECT_EQ(dir.names().size(), 2u);
  }
  EXPECT_EQ(dir.names(), std::set<std::string>{"out"});
  EXPECT_EQ(dir.read("out"), "old");
}

TEST(AtomicFile, RefusesToOverwriteBeforeAnythingIsWritten) {
  const TempDir dir;
  dir.write("out", "old");
  const auto error = test::error_of([&] { create_file(dir / "out", kNew); });
  EXPECT_TRUE(test::is_error(error, Errc::invalid_argument, "out: already exists"));
  EXPECT_EQ(error->hint().text(), "SaveOptions::overwrite overwrites it");
  EXPECT_EQ(dir.names(), std::set<std::string>{"out"});
}

TEST(AtomicFile, RefusesToOverwriteAFileThatAppearedMeanwhile) {
  const TempDir dir;
  const auto file = create_file(dir / "out", kNew);
  file->reserve(3);
  file->write_at(0, bytes_of("new"));
  dir.write("out", "somebody else's");
  EXPECT_ERROR(file->commit(), Errc::invalid_argument, "out: already exists");
  EXPECT_EQ(dir.read("out"), "somebody else's");
}

TEST(AtomicFile, HasOneWinnerAmongThoseThatMayNotOverwrite) {
  for (int round = 0; round < 20; ++round) {
    const TempDir dir;
    std::atomic<int> winners = 0, ready = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        const auto file = create_file(dir / "out", kNew);
        file->write_at(0, bytes_of(std::to_string(t)));
        for (++ready; ready < 4;) std::this_thread::yield();
        if (!test::error_of([&] { file->commit(); })) ++winners;
      });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(winners, 1);
    EXPECT_EQ(dir.names(), std::set<std::string>{"out"});
  }
}

TEST(AtomicFile, IsAlwaysSeenWhole) {
  const TempDir dir;
  const auto content_of = [](int writer) { return std::string(20'000, static_cast<char>('a' + writer)); };
  dir.write("out", content_of(0));
  std::atomic<bool> is_done = false;
  std::thread reader([&] {
    while (!is_done) {
      const std::string seen = dir.read("out");
      ASSERT_EQ(seen, std::string(20'000, seen.empty() ? '?' : seen[0]));
    }
  });
  std::vector<std::thread> writers;
  for (int t = 0; t < 3; ++t)
    writers.emplace_back([&, t] {
      for (int round = 0; round < 50; ++round) save(dir / "out", content_of(t), kForce);
    });
  for (auto& writer : writers) writer.join();
  is_done = true;
  reader.join();
  EXPECT_EQ(dir.names(), std::set<std::string>{"out"});
}

TEST(AtomicFile, KeepsThePermissionsOfTheFileThatItReplaces) {
  const TempDir dir;
  for (const mode_t mode : {0600u, 0640u, 0444u, 0755u}) {
    dir.write("out", "old");
    chmod((dir / "out").c_str(), mode);
    save(dir / "out", "new", kForce);
    EXPECT_EQ(mode_of(dir / "out"), mode);
    EXPECT_EQ(dir.read("out"), "new");
    std::filesystem::remove(dir / "out");
  }
}

TEST(AtomicFile, IsPrivateUntilItReplacesAPrivateFile) {
  const TempDir dir;
  const Umask mask(0);
  chmod(dir.write("out", "secret").c_str(), 0600);
  const auto file = create_file(dir / "out", kForce);
  EXPECT_EQ(mode_of(dir / temp_in(dir)), 0600u);
}

TEST(AtomicFile, FollowsTheUmaskOtherwise) {
  const TempDir dir;
  const Umask mask(027);
  save(dir / "out", "new", kNew);
  EXPECT_EQ(mode_of(dir / "out"), 0640u);
}

TEST(AtomicFile, DropsSetuid) {
  const TempDir dir;
  chmod(dir.write("out", "old").c_str(), 06755);
  save(dir / "out", "new", kForce);
  EXPECT_EQ(mode_of(dir / "out"), 0755u);
}

TEST(AtomicFile, CanReplaceTheVeryFileThatItIsMadeFrom) {
  const TempDir dir;
  const std::string content(100'000, 'x');
  const auto source = file_source(dir.write("model", content));
  std::filesystem::create_hard_link(dir / "model", dir / "hard");
  std::filesystem::create_symlink("model", dir / "soft");
  for (const char* name : {"model", "hard", "soft"}) {
    const auto file = create_file(dir / name, kForce);
    file->reserve(content.size());
    file->write_at(0, source->mapped());
    file->commit();
    EXPECT_EQ(dir.read(name), content);
    EXPECT_NO_THROW(source->check_unchanged());
  }
}

TEST(AtomicFile, ReplacesALinkAndNotWhatItPointsTo) {
  const TempDir dir;
  dir.write("precious", "untouched");
  std::filesystem::create_symlink("precious", dir / "out");
  EXPECT_ERROR(create_file(dir / "out", kNew), Errc::invalid_argument, "already exists");
  save(dir / "out", "new", kForce);
  EXPECT_EQ(dir.read("precious"), "untouched");
  EXPECT_EQ(dir.read("out"), "new");
  EXPECT_FALSE(std::filesystem::is_symlink(dir / "out"));

  std::filesystem::create_symlink("nowhere", dir / "dangling");
  EXPECT_ERROR(create_file(dir / "dangling", kNew), Errc::invalid_argument, "already exists");
  save(dir / "dangling", "new", kForce);
  EXPECT_FALSE(dir.names().contains("nowhere"));
}

TEST(AtomicFile, RefusesADestinationThatIsNotAFile) {
  const TempDir dir;
  std::filesystem::create_directory(dir / "folder");
  ASSERT_EQ(mkfifo((dir / "fifo").c_str(), 0600), 0);
  std::filesystem::create_symlink("/dev/null", dir / "link");
  struct Case {
    std::string path;
    Errc code;
    std::string text;
  };
  const Case cases[] = {
      {dir / "folder", Errc::invalid_argument, "folder: is a directory, not a file"},
      {dir / "folder/", Errc::invalid_argument, "folder/: is a directory, not a file"},
      {dir / "folder/..", Errc::invalid_argument, "is a directory, not a file"},
      {dir / "fifo", Errc::invalid_argument, "fifo: is a named pipe, not a file"},
      {dir / "link", Errc::invalid_argument, "link: is a character device, not a file"},
      {"/dev/null", Errc::invalid_argument, "/dev/null: is a character device, not a file"},
      {"", Errc::invalid_argument, "the output has no name"},
      {dir / "missing/out", Errc::not_found, "missing/out: its folder cannot be opened: no such file or directory"},
      {dir / "fifo/out", Errc::not_found, "fifo/out: its folder cannot be opened: not a directory"},
      {dir / std::string(300, 'x'), Errc::io, "file name too long"},
  };
  for (const Case& c : cases) EXPECT_ERROR(create_file(c.path, kForce), c.code, c.text);
}

TEST(AtomicFile, FindsATemporaryNameForTheLongestNames) {
  const TempDir dir;
  std::string wide;
  for (int i = 0; i < 85; ++i) wide += "模";  // 255 bytes, and no character is cut
  for (const std::string& name : {std::string(233, 'x'), std::string(234, 'x'), std::string(255, 'x'), wide}) {
    const auto file = create_file(dir / name, kNew);
    const std::string temp = temp_in(dir);
    EXPECT_LE(temp.size(), 255u);
    EXPECT_GT(temp.size(), 210u);
    // A hash stands for the text that is cut off.
    const std::string_view kept = std::string_view(temp).substr(1, temp.find('~') - 1);
    EXPECT_TRUE(name.starts_with(kept));
    EXPECT_EQ(temp.find(".ballast-"), kept.size() + 18);
    EXPECT_TRUE(name != wide || kept.size() % 3 == 0) << kept;
    file->commit();
    EXPECT_EQ(dir.names().size(), 1u);
    std::filesystem::remove(dir / name);
  }
}

TEST(AtomicFile, SweepsOnlyTheLeftoversOfItsOwnName) {
  const TempDir dir;
  dir.write(".out.ballast-abcdefgh.tmp", "a run that was killed");
  dir.write("precious", "untouched");
  std::filesystem::create_symlink("precious", dir / ".out.ballast-linklink.tmp");
  const std::set<std::string> others = {".other.ballast-abcdefgh.tmp", ".out.ballast-ABCDEFGH.tmp",
                                        ".out.ballast-abcdefg.tmp",    ".out.ballast-abcdefghi.tmp",
                                        "out.ballast-abcdefgh.tmp",    ".out.ballast-abcdefgh.tmpx"};
  for (const auto& name : others) dir.write(name, "not ours");
  save(dir / "out", "new", kNew);

  std::set<std::string> expected = others;
  expected.insert({"out", "precious", ".out.ballast-linklink.tmp"});
  EXPECT_EQ(dir.names(), expected);
}

// A process that has begun to write `path` and then does nothing more.
class StuckWriter {
 public:
  explicit StuckWriter(const std::string& path) {
    int ready[2];
    EXPECT_EQ(pipe(ready), 0);
    child_ = fork();
    if (child_ == 0) {
      const auto file = create_file(path, kForce);
      file->write_at(0, bytes_of("half"));
      EXPECT_EQ(write(ready[1], "x", 1), 1);
      for (;;) pause();
    }
    char byte;
    EXPECT_EQ(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
  }
  ~StuckWriter() { kill_it(); }

  void kill_it() {
    if (child_ <= 0) return;
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
    child_ = 0;
  }

 private:
  pid_t child_;
};

TEST(AtomicFile, KeepsTheTemporaryFileOfALivingWriterAndSweepsThatOfADeadOne) {
  const TempDir dir;
  StuckWriter writer(dir / "out");
  const std::string temp = temp_in(dir);
  ASSERT_FALSE(temp.empty());

  save(dir / "out", "ours", kForce);
  EXPECT_EQ(dir.names(), (std::set<std::string>{"out", temp}));
  writer.kill_it();
  save(dir / "out", "ours again", kForce);
  EXPECT_EQ(dir.names(), std::set<std::string>{"out"});
  EXPECT_EQ(dir.read("out"), "ours again");
}

TEST(AtomicFile, SurvivesSweepersThatComeBetweenCreationAndLock) {
  const TempDir dir;
  std::vector<std::thread> writers;
  for (int t = 0; t < 4; ++t)
    writers.emplace_back([&] {
      for (int round = 0; round < 100; ++round) ASSERT_NO_THROW(save(dir / "out", "x", kForce));
    });
  for (auto& writer : writers) writer.join();
  EXPECT_EQ(dir.names(), std::set<std::string>{"out"});
}

TEST(AtomicFile, TellsThatAMappedSourceShrank) {
  const TempDir dir;
  const auto source = file_source(dir.write("in", std::string(100'000, 'x')));
  const auto map = source->mapped();
  ASSERT_EQ(truncate((dir / "in").c_str(), 10), 0);
  const auto file = create_file(dir / "out", kNew);
  EXPECT_ERROR(file->write_at(0, map), Errc::changed,
               "out: cannot be written, because a file that it is made from shrank");
}

TEST(AtomicFile, SaysThatASizeIsAbsurd) {
  const TempDir dir;
  const auto file = create_file(dir / "out", kNew);
  EXPECT_ERROR(file->reserve(UINT64_MAX), Errc::io, "out: cannot be written: file too large");
}

// Calls `work` with a file system of one megabyte, in a mount namespace that ends with the call; returns the reason if
// that is impossible.
std::optional<std::string> on_small_disk(const std::function<void(const std::string& folder)>& work) {
  const TempDir dir;
  std::optional<std::string> reason;
  std::thread([&] {
    if (unshare(CLONE_NEWNS) != 0 || mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("tmpfs", dir.path().c_str(), "tmpfs", 0, "size=1m") != 0)
      reason = "a file system cannot be mounted here";
    else
      work(dir.path());
  }).join();
  return reason;
}

TEST(AtomicFile, SaysAtOnceThatTheDiskIsTooSmallAndKeepsTheOldFile) {
  const auto skipped = on_small_disk([](const std::string& folder) {
    save(folder + "/out", "old", kForce);
    const auto file = create_file(folder + "/out", kForce);
    EXPECT_ERROR(file->reserve(5'000'000), Errc::io, "out: the disk is full: 5000000 bytes (5.00 MB) are needed, ");
    EXPECT_EQ(read_text_file(folder + "/out", 100)->view(), "old");
  });
  if (skipped) GTEST_SKIP() << *skipped;
}

TEST(AtomicFile, LeavesTheOldFileWhenTheDiskFillsUp) {
  const auto skipped = on_small_disk([](const std::string& folder) {
    save(folder + "/out", "old", kForce);
    {
      const auto file = create_file(folder + "/out", kForce);
      EXPECT_ERROR(file->write_at(0, bytes_of(std::string(2'000'000, 'x'))), Errc::io, "out: the disk is full");
    }
    EXPECT_EQ(read_text_file(folder + "/out", 100)->view(), "old");
    EXPECT_NO_THROW(save(folder + "/out", std::string(900'000, 'x'), kForce)) << "the space came back";
  });
  if (skipped) GTEST_SKIP() << *skipped;
}

TEST(AtomicFile, SaysThatAFolderMayNotBeWrittenTo) {
  const TempDir dir;
  chmod(dir.path().c_str(), 0500);
  {
    const test::WithoutRootRights as_everybody;
    EXPECT_ERROR(create_file(dir / "out", kNew), Errc::io, "out: cannot be created: permission denied");
  }
  chmod(dir.path().c_str(), 0700);
}

TEST(JoinedFile, WritesAtOffsetsOfTheFileOfAnother) {
  const test::TempDir dir;
  const auto file = create_file(dir / "out", kNew);
  file->reserve(6);
  const auto joined = join_file(dir / "out", file->temporary_path(), true);
  joined->reserve(6);
  joined->write_at(3, std::as_bytes(std::span("def", 3)));
  joined->sync();
  file->write_at(0, std::as_bytes(std::span("abc", 3)));
  std::vector<std::byte> back(6);
  joined->read_back(0, back);
  EXPECT_EQ(std::memcmp(back.data(), "abcdef", 6), 0);
  joined->commit();
  EXPECT_FALSE(dir.names().contains("out")) << "only the other can give it its name";
  file->commit();
  EXPECT_EQ(dir.read("out"), "abcdef");
}

TEST(JoinedFile, StaysWithTheFileThatIsKeptOrWrittenAnew) {
  const test::TempDir dir;
  auto file = create_file(dir / "out", {.durable = false, .key = "0123456789abcdef"});
  file->reserve(3);
  const auto joined = join_file(dir / "out", file->temporary_path(), false);
  file->write_at(0, std::as_bytes(std::span("abc", 3)));
  file->keep(7);
  joined->write_at(1, std::as_bytes(std::span("B", 1)));
  file->commit();
  EXPECT_EQ(dir.read("out"), "aBc");
}

TEST(JoinedFile, SaysThatAllProcessesMustSeeTheSameFiles) {
  const test::TempDir dir;
  EXPECT_ERROR(join_file(dir / "out", dir / ".out.ballast-aaaaaaaa.tmp", true), Errc::not_found,
               "out: cannot be opened");
  EXPECT_HINT(join_file(dir / "out", dir / ".out.ballast-aaaaaaaa.tmp", true), "a file system that they share");
}

}  // namespace
}  // namespace ballast::io
