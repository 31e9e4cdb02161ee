// What a team finds out about the data is what one process finds out, to the bit.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>

#include <ballast/ballast.hpp>

#include "builders/temp_dir.hpp"
#include "core/team_error.hpp"
#include "support/thread_team.hpp"

namespace ballast {
namespace {

Tensor noise(std::uint64_t rows, std::uint64_t columns, std::uint32_t state) {
  std::vector<float> numbers(rows * columns);
  for (float& number : numbers) {
    state = state * 1664525 + 1013904223;
    number = std::ldexp(static_cast<float>(static_cast<std::int32_t>(state)), static_cast<int>(state % 40) - 50);
  }
  return Tensor::from_values<float>(DType::f32, {rows, columns}, numbers);
}

// Tensors of several parts each, blocks, values that are not finite, and one tensor under two names.
Checkpoint model() {
  Checkpoint checkpoint;
  checkpoint.tensors.insert("huge", noise(3000, 2048, 1));
  checkpoint.tensors.insert("tied", checkpoint.at("huge"));
  checkpoint.tensors.insert("strided", noise(700, 500, 2).transpose());
  checkpoint.tensors.insert("blocks", noise(64, 512, 3).to(DType::q8_0));
  for (unsigned i = 0; i < 30; ++i)
    checkpoint.tensors.insert("small." + std::to_string(i), noise(2, 33 + i, 10 + i).to(DType::bf16));
  const float odd[] = {1, NAN, INFINITY, 0, -2, -INFINITY};
  checkpoint.tensors.insert("odd", Tensor::from_values<float>(DType::f32, {2, 3}, odd));
  checkpoint.tensors.insert("zeros", Tensor::from_values<float>(DType::f32, {4096}, std::vector<float>(4096)));
  return checkpoint;
}

// Calls `work` in every member of teams of several sizes.
void in_teams(const std::function<void(Team&)>& work) {
  for (const unsigned size : {1u, 2u, 3u, 4u}) {
    test::ThreadTeam team(size);
    for (const auto& thrown : team.run(work)) ASSERT_EQ(thrown, nullptr) << error_for_others(thrown).what();
  }
}

void expect_same(const Stats& found, const Stats& wanted) {
  EXPECT_EQ(found.count, wanted.count);
  EXPECT_EQ(found.zeros, wanted.zeros);
  EXPECT_EQ(found.nans, wanted.nans);
  EXPECT_EQ(found.first_nan, wanted.first_nan);
  EXPECT_EQ(found.first_infinity, wanted.first_infinity);
  for (const auto field : {&Stats::min, &Stats::max, &Stats::mean, &Stats::std, &Stats::l1, &Stats::l2, &Stats::rms})
    EXPECT_EQ(std::bit_cast<std::uint64_t>(found.*field), std::bit_cast<std::uint64_t>(wanted.*field));
  EXPECT_EQ(found.outliers, wanted.outliers);
  EXPECT_EQ(found.histogram, wanted.histogram);
  ASSERT_EQ(found.quantiles.size(), wanted.quantiles.size());
  for (std::size_t i = 0; i < found.quantiles.size(); ++i)
    EXPECT_EQ(found.quantiles[i].value, wanted.quantiles[i].value);
  ASSERT_EQ(found.channels.size(), wanted.channels.size());
  for (std::size_t i = 0; i < found.channels.size(); ++i) {
    EXPECT_EQ(found.channels[i].finite, wanted.channels[i].finite);
    EXPECT_EQ(found.channels[i].mean, wanted.channels[i].mean);
    EXPECT_EQ(found.channels[i].std, wanted.channels[i].std);
  }
}

class TeamStats : public testing::TestWithParam<StatsOptions> {};

TEST_P(TeamStats, HaveTheBitsOfOneProcess) {
  const Checkpoint checkpoint = model();
  const auto wanted = stats(checkpoint, GetParam());
  in_teams([&](Team& member) {
    StatsOptions options = GetParam();
    options.team = &member;
    const auto found = stats(checkpoint, options);
    ASSERT_EQ(found.size(), wanted.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      SCOPED_TRACE(found[i].name);
      ASSERT_EQ(found[i].stats.has_value(), wanted[i].stats.has_value());
      if (found[i].stats) expect_same(*found[i].stats, *wanted[i].stats);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(
    Options, TeamStats,
    testing::Values(StatsOptions{}, StatsOptions{.outliers = true}, StatsOptions{.bins = 17},
                    StatsOptions{.quantiles = {0, 0.3, 1}}, StatsOptions{.axis = -1},
                    StatsOptions{.bins = 5, .outliers = true, .quantiles = {0.5}, .axis = 0, .threads = 3}));

TEST(TeamStatsOfOneTensor, HaveTheBitsOfOneProcess) {
  const Tensor tensor = model().at("huge");
  const Stats wanted = stats(tensor, {.quantiles = {0.25}});
  in_teams([&](Team& member) { expect_same(stats(tensor, {.quantiles = {0.25}, .team = &member}), wanted); });
}

TEST(TeamHash, GivesTheDigestsOfOneProcess) {
  for (const bool decoded : {false, true}) {
    const Checkpoint checkpoint = model();
    const HashReport wanted = hash(checkpoint, {.decoded = decoded});
    in_teams([&](Team& member) {
      const HashReport found = hash(checkpoint, {.decoded = decoded, .team = &member});
      EXPECT_EQ(found.digest, wanted.digest);
      ASSERT_EQ(found.tensors.size(), wanted.tensors.size());
      for (std::size_t i = 0; i < found.tensors.size(); ++i)
        EXPECT_EQ(found.tensors[i].sha256, wanted.tensors[i].sha256);
    });
  }
}

TEST(TeamHash, ReadsEachByteOnce) {
  Checkpoint many;
  for (unsigned i = 0; i < 1000; ++i) many.tensors.insert("t" + std::to_string(i), noise(1, 250, i));
  const test::TempDir folder;
  save(many, folder / "many.safetensors");
  test::ThreadTeam team(3);
  team.run_all([&](Team& member) { hash(open(folder / "many.safetensors"), {.team = &member}); });
  std::uint64_t all = 0, most = 0;
  for (unsigned rank = 0; rank < 3; ++rank) {
    all += team[rank].work().read;
    most = std::max(most, team[rank].work().read);
  }
  EXPECT_EQ(all, 1000'000u);
  EXPECT_LE(static_cast<double>(most), 1.05 * 1000'000 / 3);
}

TEST(TeamManifest, IsThatOfOneProcess) {
  const Checkpoint checkpoint = model();
  const Manifest wanted = make_manifest(checkpoint);
  in_teams([&](Team& member) {
    const Manifest found = make_manifest(checkpoint, {}, {.team = &member});
    ASSERT_EQ(found.tensors.size(), wanted.tensors.size());
    for (std::size_t i = 0; i < found.tensors.size(); ++i)
      EXPECT_EQ(found.tensors[i].digest, wanted.tensors[i].digest) << found.tensors[i].name;
  });
}

TEST(TeamProblems, AreThoseOfOneProcess) {
  const Checkpoint checkpoint = model();
  const ProblemReport wanted = find_problems(checkpoint);
  ASSERT_FALSE(wanted.ok());
  in_teams([&](Team& member) {
    const ProblemReport found = find_problems(checkpoint, {.team = &member});
    ASSERT_EQ(found.problems.size(), wanted.problems.size());
    for (std::size_t i = 0; i < found.problems.size(); ++i) EXPECT_EQ(found.problems[i].text, wanted.problems[i].text);
  });
}

void expect_same_findings(const std::string& target, const std::string& manifest = {}) {
  const VerifyReport wanted = verify(target, {.manifest = manifest});
  in_teams([&](Team& member) {
    const VerifyReport found = verify(target, {.manifest = manifest, .team = &member});
    EXPECT_EQ(found.bytes_read, wanted.bytes_read);
    ASSERT_EQ(found.findings.size(), wanted.findings.size());
    for (std::size_t i = 0; i < found.findings.size(); ++i) {
      EXPECT_EQ(found.findings[i].where, wanted.findings[i].where);
      EXPECT_EQ(found.findings[i].what, wanted.findings[i].what);
    }
  });
}

TEST(TeamVerify, FindsWhatOneProcessFinds) {
  const test::TempDir folder;
  const Checkpoint plain = select(model(), {.exclude = {"blocks"}});
  save(plain, folder / "m.pt");
  save(plain, folder / "m.safetensors", {.max_shard_bytes = 1'000'000});
  save_manifest(make_manifest(plain), folder / "manifest.json");
  expect_same_findings(folder / "m.pt");
  expect_same_findings(folder / "m.safetensors.index.json", folder / "manifest.json");

  std::string damaged = folder.read("m.pt");
  damaged[damaged.size() / 2] ^= 1;
  folder.write("m.pt", damaged);
  EXPECT_FALSE(verify(folder / "m.pt").ok());
  expect_same_findings(folder / "m.pt");
  expect_same_findings(folder / "m.pt", folder / "manifest.json");

  const auto names = folder.names();
  const auto shard = std::ranges::find_if(names, [](const auto& name) { return name.starts_with("m-00002"); });
  ASSERT_NE(shard, names.end());
  std::filesystem::resize_file(folder / *shard, folder.read(*shard).size() / 2);
  EXPECT_FALSE(verify(folder / "m.safetensors.index.json").ok());
  expect_same_findings(folder / "m.safetensors.index.json");
}

// Two files of one layout with other values: what two machines may see under one name.
TEST(TeamOfReaders, RefusesFilesThatDiffer) {
  const test::TempDir folder;
  for (const unsigned rank : {0u, 1u}) {
    Checkpoint one;
    one.tensors.insert("w", noise(40, 50, rank + 1));
    save(one, folder / std::to_string(rank) + ".safetensors");
  }
  const std::vector<std::function<void(const std::string&, Team&)>> calls = {
      [](const std::string& file, Team& team) { hash(open(file), {.team = &team}); },
      [](const std::string& file, Team& team) { stats(open(file), {.team = &team}); },
      [](const std::string& file, Team& team) { stats(open(file).at("w"), {.team = &team}); },
      [](const std::string& file, Team& team) { find_problems(open(file), {.team = &team}); },
      [](const std::string& file, Team& team) { make_manifest(open(file), {}, {.team = &team}); },
      [](const std::string& file, Team& team) { verify(file, {.team = &team}); },
  };
  for (std::size_t call = 0; call < calls.size(); ++call) {
    test::ThreadTeam team(3);
    for (const auto& thrown : team.run(
             [&](Team& member) { calls[call](folder / (member.rank() == 2 ? "1" : "0") + ".safetensors", member); })) {
      ASSERT_NE(thrown, nullptr) << call;
      EXPECT_EQ(error_for_others(thrown).code(), Errc::mismatch) << call;
      EXPECT_EQ(error_for_others(thrown).where(), folder / "1.safetensors") << call;
      EXPECT_NE(error_for_others(thrown).message().find("rank 2 of 3, host "), std::string::npos) << call;
    }
  }
}

TEST(TeamOfReaders, TakesCopiesThatKeepTheirTimes) {
  const test::TempDir folder;
  save(select(model(), {.exclude = {"blocks"}}), folder / "0.safetensors");
  const std::filesystem::path first = folder / "0.safetensors", second = folder / "1.safetensors";
  std::filesystem::copy_file(first, second);
  std::filesystem::last_write_time(second, std::filesystem::last_write_time(first));
  test::ThreadTeam team(2);
  for (const auto& thrown : team.run([&](Team& member) {
         hash(open(folder / std::to_string(member.rank()) + ".safetensors"), {.team = &member});
       }))
    EXPECT_EQ(thrown, nullptr) << error_for_others(thrown).what();
}

TEST(TeamOfReaders, RefusesTensorsThatDiffer) {
  test::ThreadTeam team(2);
  for (const auto& thrown : team.run([&](Team& member) {
         hash(select(model(), {.exclude = {member.rank() == 0 ? "odd" : "zeros"}}), {.team = &member});
       })) {
    ASSERT_NE(thrown, nullptr);
    EXPECT_EQ(error_for_others(thrown).code(), Errc::mismatch);
  }
}

TEST(TeamVerify, ThrowsInEveryMemberForATargetThatIsNotThere) {
  test::ThreadTeam team(3);
  for (const auto& thrown : team.run([&](Team& member) { verify("/nowhere/at/all", {.team = &member}); })) {
    ASSERT_NE(thrown, nullptr);
    EXPECT_EQ(error_for_others(thrown).code(), Errc::not_found);
  }
}

}  // namespace
}  // namespace ballast
