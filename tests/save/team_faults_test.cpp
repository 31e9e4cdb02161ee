// If a member of a team fails, all of them do, and what was there stays; what was finished is kept for the next run.
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>

#include <ballast/ballast.hpp>

#include "builders/temp_dir.hpp"
#include "core/team_error.hpp"
#include "save/engine.hpp"
#include "support/expect_error.hpp"
#include "support/fake_storages.hpp"
#include "support/team_model.hpp"
#include "support/thread_team.hpp"

namespace ballast {
namespace {

namespace fs = std::filesystem;
using test::model, test::some_bytes;

// A sink of one member that fails at its n-th call.
class FailingSink final : public io::Sink {
 public:
  FailingSink(std::unique_ptr<io::Sink> real, std::atomic<int>& calls_left)
      : real_(std::move(real)), calls_left_(calls_left) {}
  void reserve(std::uint64_t size) override {
    count();
    real_->reserve(size);
  }
  void write_at(std::uint64_t offset, std::span<const std::byte> bytes) override {
    count();
    real_->write_at(offset, bytes);
  }
  void sync() override {
    count();
    real_->sync();
  }
  void keep(std::uint64_t mark) override {
    count();
    real_->keep(mark);
  }
  void commit() override {
    if (real_->temporary_path() != "") count();
    real_->commit();
  }
  void read_back(std::uint64_t offset, std::span<std::byte> out) const override { real_->read_back(offset, out); }
  std::string temporary_path() const override { return real_->temporary_path(); }

 private:
  void count() {
    if (calls_left_-- == 0) throw Error(Errc::io, "the disk is on fire").in("out");
  }
  std::unique_ptr<io::Sink> real_;
  std::atomic<int>& calls_left_;
};

class TeamFaults : public testing::TestWithParam<std::tuple<unsigned, unsigned, const char*>> {};

// The last calls of all are the renames, one after the other: what those that came before have replaced stays.
TEST_P(TeamFaults, LeaveWhatWasThereWhicheverCallOfWhicheverMemberFails) {
  const auto [size, failing, out] = GetParam();
  const test::TempDir folder, alone;
  save(model(), alone / out, {.durable = false});
  for (int n = 0; n < 500; ++n) {
    folder.write(out, "old");
    std::atomic<int> calls_left = n;
    test::ThreadTeam team(size);
    const auto thrown = team.run([&, failing = failing, out = out](Team& member) {
      SaveOptions options{.threads = 1, .team = &member};
      options.memory_bytes = 1 << 18;
      const auto wrapped = [&](std::unique_ptr<io::Sink> real) -> std::unique_ptr<io::Sink> {
        if (member.rank() != failing) return real;
        return std::make_unique<FailingSink>(std::move(real), calls_left);
      };
      write_files(
          plan_save(model(), folder / out, options), options,
          [&](const std::string& path) {
            return wrapped(io::create_file(path, {.overwrite = true, .durable = false}));
          },
          [&](const std::string& path, const std::string& there) {
            return wrapped(io::join_file(path, there, false));
          });
    });
    EXPECT_EQ(folder.names(), std::set<std::string>{out}) << n;
    if (!thrown[0]) {
      EXPECT_TRUE(folder.read(out) == alone.read(out)) << "not the bytes that one process writes";
      EXPECT_GT(n, 5) << "a member makes more calls than that";
      return;
    }
    EXPECT_EQ(folder.read(out), "old") << n;
    for (const auto& one : thrown) {
      ASSERT_NE(one, nullptr) << n;
      EXPECT_TRUE(std::string(error_for_others(one).what())
                      .starts_with("out: the disk is on fire (on rank " + std::to_string(failing)));
    }
  }
  FAIL() << "it never succeeded";
}

INSTANTIATE_TEST_SUITE_P(Members, TeamFaults,
                         testing::Combine(testing::Values(2u, 3u), testing::Values(0u, 1u),
                                          testing::Values("out.safetensors", "out.pt")));

TEST(TeamOfSavers, EndsForAllIfOneMemberCannotReadASource) {
  const test::TempDir folder;
  save(model(), folder / "in.safetensors");
  test::ThreadTeam team(3);
  std::vector<Checkpoint> opened(3, open(folder / "in.safetensors"));
  fs::resize_file(folder / "in.safetensors", 1000);
  for (const auto& thrown :
       team.run([&](Team& member) { save(opened[member.rank()], folder / "out.safetensors", {.team = &member}); })) {
    ASSERT_NE(thrown, nullptr);
    EXPECT_EQ(error_for_others(thrown).code(), Errc::changed);
    EXPECT_EQ(error_for_others(thrown).where(), folder / "in.safetensors");
  }
  EXPECT_EQ(folder.names(), std::set<std::string>{"in.safetensors"});
}

TEST(TeamOfSavers, WriteNothingIfAFileOfOneIsAnother) {
  const test::TempDir folder;
  test::ThreadTeam team(2);
  for (const unsigned rank : {0u, 1u}) {
    Checkpoint other;
    other.tensors.insert("w", test::floats(64, 256, rank + 1));
    save(other, folder / std::to_string(rank) + ".safetensors");
  }
  for (const auto& thrown : team.run([&](Team& member) {
         save(cast(open(folder / std::to_string(member.rank()) + ".safetensors"), DType::bf16),
              folder / "out.safetensors", {.team = &member});
       })) {
    ASSERT_NE(thrown, nullptr);
    EXPECT_EQ(error_for_others(thrown).code(), Errc::mismatch);
    EXPECT_EQ(error_for_others(thrown).where(), folder / "1.safetensors");
    EXPECT_NE(error_for_others(thrown).message().find("changed at another time"), std::string::npos);
  }
  EXPECT_EQ(folder.names(), (std::set<std::string>{"0.safetensors", "1.safetensors"}));
}

TEST(TeamOfSavers, WriteNothingIfOneWouldMakeOtherValues) {
  const test::TempDir folder;
  save(model(), folder / "in.safetensors");
  test::ThreadTeam team(2);
  for (const auto& thrown : team.run([&](Team& member) {
         const Checkpoint opened = open(folder / "in.safetensors");
         // Names, dtypes and sizes are the same; only what was done on the way differs.
         save(cast(cast(opened, member.rank() == 0 ? DType::f16 : DType::bf16), DType::f32), folder / "out.safetensors",
              {.team = &member});
       })) {
    ASSERT_NE(thrown, nullptr);
    EXPECT_EQ(error_for_others(thrown).code(), Errc::mismatch);
    EXPECT_NE(error_for_others(thrown).message().find("would not write the same"), std::string::npos);
  }
  EXPECT_EQ(folder.names(), std::set<std::string>{"in.safetensors"});
}

TEST(TeamOfSavers, FindsAnExistingFileBeforeItWritesAnything) {
  const test::TempDir folder;
  folder.write("out.safetensors", "mine");
  test::ThreadTeam team(2);
  for (const auto& thrown :
       team.run([&](Team& member) { save(model(), folder / "out.safetensors", {.team = &member}); })) {
    ASSERT_NE(thrown, nullptr);
    EXPECT_TRUE(error_for_others(thrown).message().starts_with("already exists"));
  }
  EXPECT_EQ(folder.read("out.safetensors"), "mine");
}

TEST(TeamOfSavers, StopsAllIfTheProgressOfOneSaysSo) {
  const test::TempDir folder;
  test::ThreadTeam team(3);
  const auto thrown = team.run([&](Team& member) {
    SaveOptions options{.team = &member};
    if (member.rank() == 2) options.progress = [](const ProgressState&) { return false; };
    save(model(), folder / "out.safetensors", options);
  });
  for (const auto& one : thrown) {
    ASSERT_NE(one, nullptr);
    EXPECT_EQ(error_for_others(one).code(), Errc::cancelled);
  }
  EXPECT_TRUE(folder.names().empty());
}

// A disk of one member that gives one byte back with a wrong bit.
class RottingSink final : public io::Sink {
 public:
  RottingSink(std::unique_ptr<io::Sink> real, std::uint64_t byte) : real_(std::move(real)), byte_(byte) {}
  void reserve(std::uint64_t size) override { real_->reserve(size); }
  void write_at(std::uint64_t offset, std::span<const std::byte> bytes) override { real_->write_at(offset, bytes); }
  void commit() override { real_->commit(); }
  void read_back(std::uint64_t offset, std::span<std::byte> out) const override {
    real_->read_back(offset, out);
    if (byte_ >= offset && byte_ - offset < out.size()) out[byte_ - offset] ^= std::byte{1};
  }
  std::string temporary_path() const override { return real_->temporary_path(); }

 private:
  std::unique_ptr<io::Sink> real_;
  std::uint64_t byte_;
};

TEST(TeamOfSavers, ReplacesNothingByAFileThatDoesNotReadBack) {
  const test::TempDir folder;
  const std::uint64_t size = plan_save(model(), folder / "out.pt").files[0].size_bytes;
  for (const std::uint64_t byte : {std::uint64_t{3}, size / 3, size / 2, size - 3}) {
    folder.write("out.pt", "old");
    test::ThreadTeam team(3);
    const auto thrown = team.run([&](Team& member) {
      const SaveOptions options{.durable = false, .verify = true, .threads = 1, .team = &member};
      write_files(
          plan_save(model(), folder / "out.pt", options), options,
          [&](const std::string& path) {
            return std::make_unique<RottingSink>(io::create_file(path, {.overwrite = true, .durable = false}), byte);
          },
          [&](const std::string& path, const std::string& there) {
            return std::make_unique<RottingSink>(io::join_file(path, there, false), byte);
          });
    });
    for (const auto& one : thrown) {
      ASSERT_NE(one, nullptr) << byte;
      EXPECT_NE(error_for_others(one).message().find("does not come back"), std::string::npos);
    }
    EXPECT_EQ(folder.read("out.pt"), "old");
  }
}

// Six tensors of a file, in three shards.
class TeamResume : public testing::Test {
 protected:
  static constexpr std::uint64_t kTensorBytes = 300'000;

  TeamResume() {
    Checkpoint source;
    for (unsigned i = 0; i < 6; ++i)
      source.tensors.insert("t" + std::to_string(i),
                            Tensor(DType::u8, {kTensorBytes}, memory_storage(some_bytes(kTensorBytes, i))));
    save(source, folder_ / "source.safetensors", {.durable = false});
  }

  SaveOptions options(Team* team) const {
    SaveOptions options{.max_shard_bytes = 2 * kTensorBytes, .durable = false, .threads = 1, .team = team};
    return options;
  }

  // What each member reports of a team whose members stop when so many bytes are written.
  std::vector<std::uint64_t> convert(unsigned size, std::uint64_t stop_at) {
    std::vector<std::uint64_t> kept(size);
    test::ThreadTeam team(size);
    const auto stopped = team.run([&](Team& member) {
      SaveOptions own = options(&member);
      own.progress = [&](const ProgressState& state) { return state.done_bytes < stop_at; };
      kept[member.rank()] = save(open(folder_ / "source.safetensors"), folder_ / "m.safetensors", own).files_kept;
    });
    for (const auto& thrown : stopped) EXPECT_EQ(thrown != nullptr, stop_at != UINT64_MAX);
    return kept;
  }

  test::TempDir folder_;
};

TEST_F(TeamResume, BeginsWithTheShardsThatAnotherRunHadFinished) {
  convert(2, 5 * kTensorBytes);
  EXPECT_FALSE(folder_.names().contains("m.safetensors.index.json"));
  EXPECT_EQ(std::ranges::count_if(folder_.names(), [](const auto& name) { return name.starts_with('.'); }), 2)
      << "two shards are kept";
  EXPECT_EQ(convert(3, UINT64_MAX), std::vector<std::uint64_t>(3, 2));
  EXPECT_TRUE(diff(open(folder_ / "source.safetensors"), open(folder_ / "m.safetensors.index.json")).equal());
  EXPECT_EQ(folder_.names().size(), 5u);
}

TEST_F(TeamResume, TakesOverWhatOneProcessHadFinished) {
  SaveOptions alone = options(nullptr);
  alone.progress = [](const ProgressState& state) { return state.done_bytes < 5 * kTensorBytes; };
  EXPECT_ERROR(save(open(folder_ / "source.safetensors"), folder_ / "m.safetensors", alone), Errc::cancelled, "");
  EXPECT_EQ(convert(2, UINT64_MAX), std::vector<std::uint64_t>(2, 2));
  EXPECT_TRUE(diff(open(folder_ / "source.safetensors"), open(folder_ / "m.safetensors.index.json")).equal());
}

// A file far away, which counts what is read of it.
class FarSource final : public Source {
 public:
  FarSource(SourcePtr source, std::atomic<std::uint64_t>& read) : source_(std::move(source)), read_(read) {}
  const std::string& name() const override { return source_->name(); }
  std::uint64_t size_bytes() const override { return source_->size_bytes(); }
  std::uint64_t bytes_per_round_trip() const override { return 1 << 20; }
  std::string identity() const override { return "always the same"; }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    read_ += out.size();
    source_->read(offset, out);
  }
  void read_many(std::span<const ReadRange> ranges) const override {
    for (const ReadRange& range : ranges) read(range.offset, range.out);
  }

 private:
  SourcePtr source_;
  std::atomic<std::uint64_t>& read_;
};

TEST_F(TeamResume, GoesOnInsideAFileIfItsSourceIsFarAway) {
  const std::uint64_t all = 6 * kTensorBytes;
  std::atomic<std::uint64_t> read = 0;
  const auto copy = [&](std::uint64_t stop_at) {
    const Checkpoint source = open(std::make_shared<FarSource>(file_source(folder_ / "source.safetensors"), read));
    read = 0;
    test::ThreadTeam team(2);
    return team.run([&](Team& member) {
      SaveOptions options{.durable = false, .threads = 1, .team = &member};
      options.progress = [&](const ProgressState& state) { return state.done_bytes < stop_at; };
      save(source, folder_ / "copy.safetensors", options);
    });
  };
  for (const auto& thrown : copy(all / 2)) {
    ASSERT_NE(thrown, nullptr);
    EXPECT_EQ(error_for_others(thrown).code(), Errc::cancelled) << error_for_others(thrown).what();
  }
  EXPECT_FALSE(folder_.names().contains("copy.safetensors"));
  for (const auto& thrown : copy(UINT64_MAX)) EXPECT_EQ(thrown, nullptr);
  // The member that stopped had written almost half of its own half; the other had perhaps not begun.
  EXPECT_LT(read, all) << "what was written is not read again; a look at the file's ends is";
  EXPECT_TRUE(folder_.read("copy.safetensors") == folder_.read("source.safetensors"));
}

}  // namespace
}  // namespace ballast
