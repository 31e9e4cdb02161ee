// A sharded job that was killed is resumed, but only if the files that are left of it are still right.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include <ballast/ballast.hpp>

#include "builders/temp_dir.hpp"
#include "support/expect_error.hpp"
#include "support/fake_storages.hpp"

namespace ballast {
namespace {

using test::some_bytes;

constexpr std::uint64_t kTensorBytes = 300'000;

// Six tensors in a file, to be written as three shards.
class Resume : public testing::Test {
 protected:
  Resume() { write_source(1); }

  void write_source(unsigned seed) const {
    Checkpoint source;
    for (unsigned i = 0; i < 6; ++i) {
      source.tensors.insert("t" + std::to_string(i),
                            Tensor(DType::u8, {kTensorBytes}, memory_storage(some_bytes(kTensorBytes, seed + i))));
    }
    save(source, folder_ / "source.safetensors", {.overwrite = true, .durable = false});
  }

  static SaveOptions options() {
    SaveOptions options;
    options.max_shard_bytes = 2 * kTensorBytes;
    options.durable = false;
    options.threads = 1;
    return options;
  }

  SaveReport convert(const SaveOptions& options) const {
    return save(open(folder_ / "source.safetensors"), folder_ / name_, options);
  }

  // Runs a process that dies, without a chance to clean up, when so many bytes are written.
  void convert_and_die_at(std::uint64_t bytes) const {
    const pid_t child = fork();
    if (child == 0) {
      SaveOptions options = Resume::options();
      options.progress = [&](const ProgressState& state) {
        if (state.done_bytes >= bytes) raise(SIGKILL);
        return true;
      };
      convert(options);
      _exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "it was to be killed";
  }

  void cancel_at(std::uint64_t bytes) const {
    SaveOptions cancelled = options();
    cancelled.progress = [&](const ProgressState& state) { return state.done_bytes < bytes; };
    EXPECT_ERROR(convert(cancelled), Errc::cancelled, "cancelled");
    EXPECT_HINT(convert(cancelled), "2 of 4 files are finished and kept");
  }

  std::set<std::string> leftovers() const {
    std::set<std::string> found;
    for (const std::string& name : folder_.names()) {
      if (name.starts_with('.')) found.insert(name);
    }
    return found;
  }

  void expect_complete() const {
    EXPECT_EQ(folder_.names(), (std::set<std::string>{"source.safetensors", "m-00001-of-00003.safetensors",
                                                      "m-00002-of-00003.safetensors", "m-00003-of-00003.safetensors",
                                                      "m.safetensors.index.json"}));
    EXPECT_TRUE(diff(open(folder_ / "source.safetensors"), open(folder_ / "m.safetensors.index.json")).equal());
  }

  test::TempDir folder_;
  std::string name_ = "m.safetensors";
};

TEST_F(Resume, WritesOnlyTheShardsThatWereNotFinished) {
  convert_and_die_at(5 * kTensorBytes);
  EXPECT_EQ(leftovers().size(), 4u) << "two shards that are kept, one that is not, and the index";
  EXPECT_EQ(convert(options()).files_kept, 2u);
  expect_complete();
}

// The number of a shard is cut off if the name of its temporary file would be too long.
TEST_F(Resume, KeepsShardsApartWhoseNamesAreLong) {
  name_.assign(215, 'n');  // in two steps, because GCC 12 wrongly sees an overflow in the sum
  name_ += ".safetensors";
  convert_and_die_at(5 * kTensorBytes);
  EXPECT_EQ(convert(options()).files_kept, 2u);
  EXPECT_TRUE(verify(folder_ / (name_ + ".index.json")).ok());
  EXPECT_TRUE(diff(open(folder_ / "source.safetensors"), open(folder_ / (name_ + ".index.json"))).equal());
}

// Two runs of the same job at the same time do not remove each other's files.
TEST_F(Resume, LetsAnotherRunDoTheSameJob) {
  SaveOptions first = options();
  bool has_run = false;
  first.overwrite = true;
  first.progress = [&](const ProgressState& state) {
    if (state.done_bytes >= 3 * kTensorBytes && !std::exchange(has_run, true)) {
      SaveOptions second = options();
      second.overwrite = true;
      convert(second);
    }
    return true;
  };
  convert(first);
  EXPECT_TRUE(has_run);
  expect_complete();
}

TEST_F(Resume, BeginsAnewForAnotherPlan) {
  convert_and_die_at(5 * kTensorBytes);
  SaveOptions other = options();
  other.max_shard_bytes = kTensorBytes;
  EXPECT_EQ(convert(other).files_kept, 0u);
  EXPECT_TRUE(leftovers().empty()) << "what was kept of the other plan is of no use any more";
}

TEST_F(Resume, BeginsAnewForASourceThatChanged) {
  convert_and_die_at(5 * kTensorBytes);
  write_source(77);
  EXPECT_EQ(convert(options()).files_kept, 0u);
  expect_complete();
}

TEST_F(Resume, WritesAShardAgainThatIsNoLongerWhatItWas) {
  convert_and_die_at(5 * kTensorBytes);
  for (const std::string& name : leftovers()) {
    if (!name.starts_with(".m-00001-of-00003")) continue;
    const int fd = ::open((folder_ / name).c_str(), O_WRONLY);
    ASSERT_EQ(pwrite(fd, "rot", 3, kTensorBytes), 3);
    close(fd);
  }
  EXPECT_EQ(convert(options()).files_kept, 1u);
  expect_complete();
}

TEST_F(Resume, WritesAShardAgainThatWasCut) {
  convert_and_die_at(5 * kTensorBytes);
  for (const std::string& name : leftovers()) {
    if (name.starts_with(".m-00002-of-00003")) std::filesystem::resize_file(folder_ / name, kTensorBytes);
  }
  EXPECT_EQ(convert(options()).files_kept, 1u);
  expect_complete();
}

TEST_F(Resume, DoesNotTrustAFileThatOthersCanWrite) {
  convert_and_die_at(5 * kTensorBytes);
  for (const std::string& name : leftovers()) chmod((folder_ / name).c_str(), 0666);
  EXPECT_EQ(convert(options()).files_kept, 0u);
  expect_complete();
}

TEST_F(Resume, GoesOnIfTheGroupMayWrite) {
  const mode_t before = umask(002);
  convert_and_die_at(5 * kTensorBytes);
  EXPECT_EQ(convert(options()).files_kept, 2u);
  umask(before);
  expect_complete();
  struct stat found = {};
  for (const char* name : {"m-00001-of-00003.safetensors", "m-00003-of-00003.safetensors"}) {
    ASSERT_EQ(stat((folder_ / name).c_str(), &found), 0);
    EXPECT_EQ(found.st_mode & 0777u, 0664u) << name;
  }
}

// Ctrl-C loses no more than a kill does: the shard at which the job was stopped.
TEST_F(Resume, KeepsTheFinishedShardsOfAJobThatIsCancelled) {
  cancel_at(5 * kTensorBytes);
  EXPECT_EQ(leftovers().size(), 2u) << "of the third shard and the index nothing is left";
  EXPECT_EQ(convert(options()).files_kept, 2u);
  expect_complete();
}

TEST_F(Resume, LeavesNothingOfAJobThatIsCancelledInItsFirstShard) {
  SaveOptions cancelled = options();
  cancelled.progress = [](const ProgressState& state) { return state.done_bytes < kTensorBytes; };
  const auto error = test::error_of([&] { convert(cancelled); });
  EXPECT_TRUE(test::is_error(error, Errc::cancelled, "cancelled"));
  EXPECT_TRUE(error->hint().empty());
  EXPECT_EQ(folder_.names(), std::set<std::string>{"source.safetensors"});
}

TEST_F(Resume, KeepsTheShardsThatItTookOverWhenItIsCancelledAgain) {
  convert_and_die_at(5 * kTensorBytes);
  SaveOptions cancelled = options();
  cancelled.progress = [](const ProgressState& state) { return state.done_bytes < kTensorBytes; };
  EXPECT_ERROR(convert(cancelled), Errc::cancelled, "cancelled");
  EXPECT_EQ(convert(options()).files_kept, 2u);
  expect_complete();
}

// A file that nobody wrote to is what it was. A kept shard is read only if the system cannot say that.
TEST_F(Resume, ReadsAKeptShardOnlyIfSomebodyMayHaveWrittenToIt) {
  const auto bytes_checked = [&](bool verify) {
    std::uint64_t bytes = 0;
    SaveOptions again = options();
    again.verify = verify;
    again.progress = [&](const ProgressState& state) {
      if (state.phase == "checking what is there") bytes += state.done_bytes;
      return true;
    };
    EXPECT_EQ(convert(again).files_kept, 2u);
    expect_complete();
    for (const std::string& name : folder_.names()) {
      if (name.starts_with("m")) std::filesystem::remove(folder_ / name);
    }
    return bytes;
  };
  cancel_at(5 * kTensorBytes);
  EXPECT_EQ(bytes_checked(false), 0u);
  cancel_at(5 * kTensorBytes);
  EXPECT_GE(bytes_checked(true), 4 * kTensorBytes) << "whoever wants everything read back gets that";
  cancel_at(5 * kTensorBytes);
  for (const std::string& name : leftovers())
    std::filesystem::last_write_time(folder_ / name, std::filesystem::file_time_type::clock::now());
  EXPECT_GE(bytes_checked(false), 4 * kTensorBytes) << "somebody touched it";
}

TEST_F(Resume, LeavesNothingOfAKilledJobAfterASingleFile) {
  convert_and_die_at(5 * kTensorBytes);
  SaveOptions single;
  single.durable = false;
  convert(single);
  EXPECT_EQ(folder_.names(), (std::set<std::string>{"source.safetensors", "m.safetensors"}));
}

TEST_F(Resume, HasNoKeyForTensorsFromMemory) {
  Checkpoint two;
  two.tensors.insert("a", Tensor(DType::u8, {1000}, memory_storage(some_bytes(1000, 1))));
  two.tensors.insert("b", Tensor(DType::u8, {1000}, memory_storage(some_bytes(1000, 2))));
  SaveOptions sharded;
  sharded.max_shard_bytes = 1000;
  EXPECT_EQ(plan_save(two, folder_ / "m.safetensors", sharded).key, "");
}

TEST_F(Resume, TellsPlansApartThatDifferOnlyInTheOriginOfTheirValues) {
  const Checkpoint source = open(folder_ / "source.safetensors");
  const std::string plain = plan_save(source, folder_ / "m.safetensors", options()).key;
  ASSERT_EQ(plain.size(), 16u);
  EXPECT_EQ(plan_save(source, folder_ / "m.safetensors", options()).key, plain);
  const Checkpoint swapped = rename(source, {{"t0", "x"}, {"t1", "t0"}, {"x", "t1"}});
  EXPECT_NE(plan_save(swapped, folder_ / "m.safetensors", options()).key, plain);
}

}  // namespace
}  // namespace ballast
