// A team writes what one process writes, to the bit.
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <functional>

#include <ballast/ballast.hpp>

#include "builders/temp_dir.hpp"
#include "core/team_error.hpp"
#include "save/jobs.hpp"
#include "support/fake_storages.hpp"
#include "support/team_model.hpp"
#include "support/thread_team.hpp"

namespace ballast {
namespace {

namespace fs = std::filesystem;
using test::floats, test::model, test::some_bytes;

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

// Writes a base and an adapter of it; the tensor that they make is to be saved.
std::function<Checkpoint()> base_and_adapter(const test::TempDir& folder, std::uint64_t rows, std::uint64_t columns) {
  Checkpoint base;
  base.tensors.insert("layer.weight", floats(rows, columns, 1));
  save(base, folder / "base.safetensors");
  Checkpoint lora;
  lora.tensors.insert("base_model.model.layer.lora_A.weight", floats(8, columns, 2));
  lora.tensors.insert("base_model.model.layer.lora_B.weight", floats(rows, 8, 3));
  fs::create_directory(folder / "lora");
  save(lora, folder / "lora/adapter_model.safetensors");
  folder.write("lora/adapter_config.json",
               R"({"peft_type": "LORA", "r": 8, "lora_alpha": 16, "target_modules": ["layer"]})");
  return [&folder] {
    const Checkpoint opened = open(folder / "base.safetensors");
    return merge(opened, {load_adapter(folder / "lora", for_base(opened))});
  };
}

std::uint64_t read_by(test::ThreadTeam& team, unsigned size) {
  std::uint64_t all = 0;
  for (unsigned rank = 0; rank < size; ++rank) all += team[rank].work().read;
  return all;
}

// Rows whose panels and the leaves of digests have no common multiple that a buffer holds.
TEST(TeamOfSavers, ReadsTheBaseOfAMergeOnce) {
  const test::TempDir folder;
  constexpr std::uint64_t kBase = 400 * 11'008 * 4, kAdapter = 8 * (400 + 11'008) * 4;
  const auto merged = base_and_adapter(folder, 400, 11'008);
  for (const bool digests : {false, true}) {
    test::ThreadTeam team(4);
    for (const auto& thrown : team.run([&](Team& member) {
           SaveOptions options{.overwrite = true, .durable = false, .digests = digests, .threads = 2, .team = &member};
           save(merged(), folder / "shared.safetensors", options);
         }))
      ASSERT_EQ(thrown, nullptr) << error_for_others(thrown).what();
    const std::uint64_t read = read_by(team, 4);
    EXPECT_GE(read, kBase);
    // Digests need whole leaves, so that some panels are made by two members.
    EXPECT_LE(read, (digests ? kBase * 3 / 2 : kBase) + 4 * kAdapter) << digests;
  }
}

TEST(TeamOfSavers, ReadsCompressedTensorsOnceHoweverManyThreadsThereAre) {
  const test::TempDir folder;
  Checkpoint plain;
  plain.tensors.insert("w", floats(1000, 5000, 1));
  save(plain, folder / "packed.safetensors", {.compress = true});
  const auto packed_bytes = static_cast<double>(fs::file_size(folder / "packed.safetensors"));
  test::ThreadTeam team(4);
  for (const auto& thrown : team.run([&](Team& member) {
         save(open(folder / "packed.safetensors"), folder / "plain.safetensors",
              {.overwrite = true, .durable = false, .threads = 128, .team = &member});
       }))
    ASSERT_EQ(thrown, nullptr) << error_for_others(thrown).what();
  EXPECT_GE(static_cast<double>(read_by(team, 4)), 0.9 * packed_bytes);
  EXPECT_LE(static_cast<double>(read_by(team, 4)), 1.02 * packed_bytes);
}

TEST(TeamOfSavers, CutsNoGranuleThatABufferHolds) {
  const auto decoded = std::make_shared<test::DecodedStorage>(some_bytes(5'000'000, 1), 110'080);
  Checkpoint checkpoint;
  checkpoint.tensors.insert("decoded", Tensor(DType::u8, {5'000'000}, decoded));
  const SavePlan plan = plan_save(checkpoint, "out.safetensors");
  for (const unsigned members : {1u, 4u}) {
    for (const Job& job : make_jobs(plan.files[0], job_sizes(1 << 20, plan.data_bytes, members))) {
      for (const Job::Part& part : job.parts) EXPECT_EQ(part.first % 110'080, 0u) << members;
    }
  }
}

TEST(TeamOfSavers, MergesAnAdapterLikeOneProcess) {
  const test::TempDir folder;
  const auto merged = base_and_adapter(folder, 1024, 512);
  save(merged(), folder / "alone.safetensors");
  for (const unsigned size : {2u, 3u}) {
    test::ThreadTeam team(size);
    const std::string name = "shared by " + std::to_string(size) + ".safetensors";
    team.run_all([&](Team& member) { save(merged(), folder / name, {.durable = false, .team = &member}); });
    EXPECT_TRUE(folder.read(name) == folder.read("alone.safetensors")) << size;
  }
}

TEST(TeamOfSavers, SharesOneThousandEqualTensorsEvenly) {
  for (const std::uint64_t columns : {1024u, 20'000u}) {
    const test::TempDir folder;
    Checkpoint many;
    for (unsigned i = 0; i < 1000; ++i) many.tensors.insert("t" + std::to_string(i), floats(1, columns, i));
    save(many, folder / "in.safetensors", {.durable = false});
    for (const unsigned size : {2u, 3u, 4u}) {
      test::ThreadTeam team(size);
      team.run_all([&](Team& member) {
        // A file system may share what is merely copied, so something is done to it.
        save(cast(open(folder / "in.safetensors"), DType::f64), folder / "out.safetensors",
             {.overwrite = true, .durable = false, .team = &member});
      });
      std::uint64_t all = 0, most = 0;
      for (unsigned rank = 0; rank < size; ++rank) {
        all += team[rank].work().written;
        most = std::max(most, team[rank].work().written);
        EXPECT_EQ(2 * team[rank].work().read, team[rank].work().written);
      }
      EXPECT_EQ(all, 1000 * columns * 8) << "each byte is written once";
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
  team.run_all([&](Team& member) {
    save(checkpoint, folder / "out.safetensors", {.overwrite = true, .durable = false, .team = &member});
  });
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

}  // namespace
}  // namespace ballast
