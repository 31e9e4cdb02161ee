// A team writes what one process writes, to the bit, and leaves what was there if any member fails.
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <functional>

#include <ballast/ballast.hpp>

#include "builders/safetensors_file.hpp"
#include "builders/temp_dir.hpp"
#include "core/team_error.hpp"
#include "save/engine.hpp"
#include "save/jobs.hpp"
#include "support/expect_error.hpp"
#include "support/fake_storages.hpp"
#include "support/thread_team.hpp"

namespace ballast {
namespace {

namespace fs = std::filesystem;
using test::some_bytes;

Tensor floats(std::uint64_t rows, std::uint64_t columns, unsigned seed) {
  std::vector<std::byte> bytes(rows * columns * 4);
  std::uint32_t state = seed;
  for (std::uint64_t i = 0; i < rows * columns; ++i) {
    state = state * 1664525 + 1013904223;
    const float value = static_cast<float>(static_cast<std::int32_t>(state)) / 2e9F;
    std::memcpy(&bytes[4 * i], &value, 4);
  }
  return Tensor(DType::f32, {rows, columns}, memory_storage(std::move(bytes)));
}

// Large and small tensors, one of them strided, one with values beyond F16 and one beyond BF16's precision only.
Checkpoint model() {
  Checkpoint checkpoint;
  checkpoint.tensors.insert("large", floats(700, 1024, 1));
  checkpoint.tensors.insert("strided", floats(512, 768, 2).transpose());
  for (unsigned i = 0; i < 40; ++i) checkpoint.tensors.insert("small." + std::to_string(i), floats(3, 256, 10 + i));
  const float huge[] = {1e5F, 1.0F, -2e6F, 3e38F};
  const auto bytes = std::as_bytes(std::span(huge));
  checkpoint.tensors.insert("huge", Tensor(DType::f32, {4}, memory_storage({bytes.begin(), bytes.end()})));
  return checkpoint;
}

Checkpoint fakes() {
  Checkpoint checkpoint;
  const auto add = [&](const char* name, StoragePtr storage) {
    const std::uint64_t size = storage->size_bytes();
    checkpoint.tensors.insert(name, Tensor(DType::u8, {size}, std::move(storage)));
  };
  add("mapped", memory_storage(some_bytes(1'000'001, 1)));
  add("deflated", std::make_shared<test::DeflatedStorage>(some_bytes(1'000'001, 2)));
  add("decoded", std::make_shared<test::DecodedStorage>(some_bytes(1'000'001, 3), 4096));
  add("prepared", std::make_shared<test::PreparedStorage>(some_bytes(1'000'001, 4)));
  add("remote", std::make_shared<test::RemoteStorage>(some_bytes(1'000'001, 5)));
  return checkpoint;
}

struct Way {
  const char* name;
  const char* out;
  std::function<Checkpoint()> input;
  std::function<void(SaveOptions&)> change = [](SaveOptions&) {};
};

const std::vector<Way>& ways() {
  static const std::vector<Way> all = {
      {"copy", "out.safetensors", model},
      {"fakes", "out.safetensors", fakes},
      {"cast", "out.safetensors", [] { return cast(model(), DType::f16); }},
      {"shards", "out.safetensors", model, [](SaveOptions& options) { options.max_shard_bytes = 2'000'000; }},
      {"sharded_cast", "out.safetensors", [] { return cast(model(), DType::bf16); },
       [](SaveOptions& options) { options.max_shard_bytes = 500'000; }},
      {"torch", "out.pt", model},
      {"gguf_blocks", "out.gguf", [] { return cast(model(), DType::q4_k); }},
      {"gguf_shards", "out.gguf", [] { return cast(model(), DType::q8_0); },
       [](SaveOptions& options) { options.max_shard_bytes = 300'000; }},
      {"compressed", "out.safetensors", [] { return cast(model(), DType::bf16); },
       [](SaveOptions& options) { options.compress = true; }},
      {"npz", "out.npz", model},
      {"verified", "out.pt", model, [](SaveOptions& options) { options.verify = true; }},
      {"little_memory", "out.safetensors", fakes, [](SaveOptions& options) { options.memory_bytes = 1 << 17; }},
  };
  return all;
}

std::map<std::string, std::string> files_in(const test::TempDir& folder) {
  std::map<std::string, std::string> files;
  for (const std::string& name : folder.names()) files[name] = folder.read(name);
  return files;
}

SaveOptions options_of(const Way& way) {
  SaveOptions options;
  options.durable = false;
  options.threads = 2;
  options.digests = true;
  way.change(options);
  return options;
}

void expect_same(const SaveReport& found, const SaveReport& wanted) {
  ASSERT_EQ(found.digests.size(), wanted.digests.size());
  for (std::size_t i = 0; i < found.digests.size(); ++i) {
    EXPECT_EQ(found.digests[i].name, wanted.digests[i].name);
    EXPECT_EQ(found.digests[i].digest, wanted.digests[i].digest);
  }
  ASSERT_EQ(found.overflows.size(), wanted.overflows.size());
  for (std::size_t i = 0; i < found.overflows.size(); ++i) {
    EXPECT_EQ(found.overflows[i].overflows.count, wanted.overflows[i].overflows.count);
    EXPECT_EQ(found.overflows[i].overflows.largest, wanted.overflows[i].overflows.largest);
  }
  ASSERT_EQ(found.notes.size(), wanted.notes.size());
  for (std::size_t i = 0; i < found.notes.size(); ++i) EXPECT_EQ(found.notes[i].text, wanted.notes[i].text);
  EXPECT_EQ(found.files.size(), wanted.files.size());
}

class TeamSave : public testing::TestWithParam<std::tuple<Way, unsigned>> {};

TEST_P(TeamSave, WritesTheBytesOfOneProcess) {
  const auto& [way, size] = GetParam();
  const test::TempDir alone, shared;
  const SaveReport wanted = save(way.input(), alone / way.out, options_of(way));
  test::ThreadTeam team(size);
  for (const auto& thrown : team.run([&](Team& member) {
         SaveOptions options = options_of(way);
         options.team = &member;
         expect_same(save(way.input(), shared / way.out, options), wanted);
       }))
    ASSERT_EQ(thrown, nullptr) << error_for_others(thrown).what();
  EXPECT_TRUE(files_in(shared) == files_in(alone));
}

INSTANTIATE_TEST_SUITE_P(Ways, TeamSave, testing::Combine(testing::ValuesIn(ways()), testing::Values(1u, 2u, 3u, 4u)),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param).name) + "_" +
                                  std::to_string(std::get<1>(info.param));
                         });

TEST(TeamOfSavers, MergesAnAdapterLikeOneProcess) {
  const test::TempDir folder;
  Checkpoint base;
  base.tensors.insert("layer.weight", floats(1024, 512, 1));
  save(base, folder / "base.safetensors");
  Checkpoint lora;
  lora.tensors.insert("base_model.model.layer.lora_A.weight", floats(8, 512, 2));
  lora.tensors.insert("base_model.model.layer.lora_B.weight", floats(1024, 8, 3));
  fs::create_directory(folder / "lora");
  save(lora, folder / "lora/adapter_model.safetensors");
  folder.write("lora/adapter_config.json",
               R"({"peft_type": "LORA", "r": 8, "lora_alpha": 16, "target_modules": ["layer"]})");
  const auto merged = [&] {
    const Checkpoint opened = open(folder / "base.safetensors");
    return merge(opened, {load_adapter(folder / "lora", for_base(opened))});
  };
  save(merged(), folder / "alone.safetensors");
  for (const unsigned size : {2u, 3u}) {
    test::ThreadTeam team(size);
    team.run(
        [&](Team& member) { save(merged(), folder / "shared.safetensors", {.overwrite = true, .team = &member}); });
    EXPECT_TRUE(folder.read("shared.safetensors") == folder.read("alone.safetensors")) << size;
  }
}

TEST(TeamOfSavers, SharesOneThousandEqualTensorsEvenly) {
  for (const std::uint64_t columns : {1024u, 20'000u}) {
    const test::TempDir folder;
    Checkpoint many;
    for (unsigned i = 0; i < 1000; ++i) many.tensors.insert("t" + std::to_string(i), floats(1, columns, i));
    for (const unsigned size : {2u, 3u, 4u}) {
      test::ThreadTeam team(size);
      team.run([&](Team& member) { save(many, folder / "out.safetensors", {.overwrite = true, .team = &member}); });
      std::uint64_t all = 0, most = 0;
      for (unsigned rank = 0; rank < size; ++rank) {
        all += team[rank].work().written;
        most = std::max(most, team[rank].work().written);
        EXPECT_EQ(team[rank].work().read, team[rank].work().written) << "a copy";
      }
      EXPECT_EQ(all, 1000 * columns * 4) << "each byte is written once";
      EXPECT_LE(static_cast<double>(most), 1.05 * static_cast<double>(all) / size) << columns;
    }
  }
}

// A storage that is made as a whole, and counts how often.
class WholeStorage final : public Storage {
 public:
  explicit WholeStorage(std::atomic<unsigned>& made) : base_(floats(2, 500'000, 1)), made_(made) {}
  std::uint64_t size_bytes() const override { return base_.nbytes(); }
  std::uint64_t memory_bytes() const override { return size_bytes(); }
  Derivation derivation() const override { return {"made as a whole", {&base_}, {}}; }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    if (offset == 0) ++made_;
    base_.read(offset, out);
  }

 private:
  Tensor base_;
  std::atomic<unsigned>& made_;
};

TEST(TeamOfSavers, LeavesATensorThatIsMadeAsAWholeToOneMember) {
  std::atomic<unsigned> made = 0;
  Checkpoint checkpoint;
  checkpoint.tensors.insert("whole", Tensor(DType::f32, {1'000'000}, std::make_shared<WholeStorage>(made)));
  checkpoint.tensors.insert("other", floats(1000, 1000, 2));
  const test::TempDir folder;
  const SavePlan plan = plan_save(checkpoint, folder / "out.safetensors");
  std::size_t parts = 0;
  for (const Job& job : make_jobs(plan.files[0], job_sizes(1 << 20, plan.data_bytes, 3))) {
    for (const Job::Part& part : job.parts) parts += part.tensor->nbytes() == part.size ? 1u : 0u;
  }
  EXPECT_EQ(parts, 1u) << "all of it is one part of one job";
  test::ThreadTeam team(3);
  team.run([&](Team& member) { save(checkpoint, folder / "out.safetensors", {.overwrite = true, .team = &member}); });
  EXPECT_EQ(made, 1u);
}

TEST(TeamOfSavers, RefusesMembersThatWouldWriteSomethingElse) {
  const test::TempDir folder;
  test::ThreadTeam team(3);
  for (const auto& thrown : team.run([&](Team& member) {
         save(cast(model(), member.rank() == 1 ? DType::f16 : DType::bf16), folder / "out.safetensors",
              {.team = &member});
       })) {
    ASSERT_NE(thrown, nullptr);
    EXPECT_EQ(error_for_others(thrown).code(), Errc::mismatch);
    EXPECT_NE(error_for_others(thrown).message().find("would not write the same"), std::string::npos);
  }
  EXPECT_TRUE(folder.names().empty());
}

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
  const test::TempDir folder;
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
      EXPECT_NE(folder.read(out), "old");
      EXPECT_GT(n, 5) << "a member makes more calls than that";
      return;
    }
    EXPECT_EQ(folder.read(out), "old") << n;
    for (const auto& one : thrown) {
      ASSERT_NE(one, nullptr) << n;
      EXPECT_STREQ(error_for_others(one).what(), "out: the disk is on fire");
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

TEST(TeamOfSavers, FindsAnExistingFileBeforeItWritesAnything) {
  const test::TempDir folder;
  folder.write("out.safetensors", "mine");
  test::ThreadTeam team(2);
  for (const auto& thrown :
       team.run([&](Team& member) { save(model(), folder / "out.safetensors", {.team = &member}); })) {
    ASSERT_NE(thrown, nullptr);
    EXPECT_EQ(error_for_others(thrown).message(), "already exists");
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
    team.run([&](Team& member) {
      SaveOptions own = options(&member);
      own.progress = [&](const ProgressState& state) { return state.done_bytes < stop_at; };
      kept[member.rank()] = save(open(folder_ / "source.safetensors"), folder_ / "m.safetensors", own).files_kept;
    });
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
      const SaveOptions options{.verify = true, .threads = 1, .team = &member};
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

}  // namespace
}  // namespace ballast
