// Bytes that are changed in place: the file has the old bytes or the new ones, whatever happens meanwhile.
#include "io/patch_file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "builders/temp_dir.hpp"
#include "io/posix.hpp"
#include "support/expect_error.hpp"

namespace ballast::io {
namespace {

constexpr const char* kUndo = ".f.ballast-undo";

class PatchFile : public testing::Test {
 protected:
  PatchFile() { folder_.write("f", before_); }

  void patch(const std::string& bytes) const {
    patch_file(*file_source(path_), std::as_bytes(std::span(bytes)), false);
  }

  // Returns what a process leaves that is killed after it put both versions aside, which is 80 kB, and before it wrote
  // its first byte of the file, which lies behind 200 kB: no file may be longer than 150 kB.
  std::string undo_of_a_patch() const {
    const pid_t child = fork();
    if (child == 0) {
      const rlimit none = {0, 0}, small = {150'000, 150'000};
      setrlimit(RLIMIT_CORE, &none);
      setrlimit(RLIMIT_FSIZE, &small);
      patch(after_);
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ);
    EXPECT_EQ(folder_.read("f"), before_);
    return folder_.read(kUndo);
  }

  void write_into_file(std::size_t offset, const std::string& bytes) const {
    const UniqueFd file(::open(path_.c_str(), O_WRONLY));
    ASSERT_EQ(pwrite(file.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset)),
              static_cast<ssize_t>(bytes.size()));
  }

  test::TempDir folder_;
  std::string path_ = folder_ / "f";
  std::string same_ = std::string(200'000, 's');
  std::string before_ = same_ + std::string(40'000, 'a'), after_ = same_ + std::string(40'000, 'b');
};

TEST_F(PatchFile, ChangesTheBytesThatItIsGiven) {
  patch("xyz");
  EXPECT_EQ(folder_.read("f"), "xyz" + before_.substr(3));
  patch(after_);
  EXPECT_EQ(folder_.read("f"), after_);
  EXPECT_EQ(folder_.names(), std::set<std::string>{"f"});
}

TEST_F(PatchFile, LeavesAFileAloneThatReplacedTheOriginal) {
  const auto source = file_source(path_);
  folder_.write("g", "another");
  std::filesystem::rename(folder_ / "g", path_);
  EXPECT_ERROR(patch_file(*source, std::as_bytes(std::span(after_)), false), Errc::changed, "was replaced");
  EXPECT_EQ(folder_.read("f"), "another");
}

TEST_F(PatchFile, LeavesAFileAloneThatChanged) {
  const auto source = file_source(path_);
  folder_.write("f", after_ + "more");
  EXPECT_ERROR(patch_file(*source, std::as_bytes(std::span(before_)), false), Errc::changed, "");
  EXPECT_EQ(folder_.read("f"), after_ + "more");
}

TEST_F(PatchFile, LeavesAFileAloneThatAnotherProcessEdits) {
  const UniqueFd other(::open(path_.c_str(), O_RDONLY));
  ASSERT_EQ(flock(other.get(), LOCK_EX), 0);
  EXPECT_ERROR(patch(after_), Errc::io, "being edited by another");
}

TEST_F(PatchFile, PutsTheOldBytesBackAfterItWasKilled) {
  ASSERT_FALSE(undo_of_a_patch().empty());
  write_into_file(204'800, std::string(4096, 'b'));  // one block had been written
  EXPECT_TRUE(has_cut_off_patch(path_));
  undo_cut_off_patch(path_);
  EXPECT_EQ(folder_.read("f"), before_);
  EXPECT_EQ(folder_.names(), std::set<std::string>{"f"});
}

TEST_F(PatchFile, PutsNothingBackIntoAFileThatChangedSince) {
  ASSERT_FALSE(undo_of_a_patch().empty());
  write_into_file(204'800, "c");
  const std::string changed = folder_.read("f");
  undo_cut_off_patch(path_);
  EXPECT_EQ(folder_.read("f"), changed);
  EXPECT_FALSE(has_cut_off_patch(path_));
}

TEST_F(PatchFile, PutsNothingBackIntoAnotherFile) {
  ASSERT_FALSE(undo_of_a_patch().empty());
  folder_.write("g", after_);
  std::filesystem::rename(folder_ / "g", path_);
  undo_cut_off_patch(path_);
  EXPECT_EQ(folder_.read("f"), after_);
}

TEST_F(PatchFile, TrustsNoUndoThatIsNotWholeOrThatOthersCanWrite) {
  const std::string undo = undo_of_a_patch();
  write_into_file(204'800, std::string(4096, 'b'));
  const std::string now = folder_.read("f");
  const auto expect_no_use_of = [&](const std::string& content, mode_t mode) {
    folder_.write(kUndo, content);
    ASSERT_EQ(chmod((folder_ / kUndo).c_str(), mode), 0);
    undo_cut_off_patch(path_);
    EXPECT_EQ(folder_.read("f"), now);
    EXPECT_FALSE(has_cut_off_patch(path_));
  };
  for (const std::size_t size : {std::size_t{0}, std::size_t{20}, std::size_t{60}, undo.size() - 1})
    expect_no_use_of(undo.substr(0, size), 0600);
  std::string bent = undo;
  bent[100] ^= 1;
  expect_no_use_of(bent, 0600);
  expect_no_use_of(undo, 0666);
}

}  // namespace
}  // namespace ballast::io
