// The schedule of jobs on several nodes, carried out on paper: what arrives where.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <tuple>
#include <vector>

#include <ballast/ballast.hpp>
#include <ballast/mpi.hpp>

#include "builders/safetensors_file.hpp"
#include "mpi/schedule.hpp"
#include "support/expect_error.hpp"
#include "support/fake_storages.hpp"

namespace ballast::test {
namespace {

using namespace ballast::mpi;

// A file of its own for each tensor, or bytes that are made in blocks.
class PlacedStorage final : public Storage {
 public:
  PlacedStorage(std::uint64_t size, std::string file, std::uint64_t granule = 1, bool is_sequential = false)
      : size_(size), file_(std::move(file)), granule_(granule), is_sequential_(is_sequential) {}
  std::uint64_t size_bytes() const override { return size_; }
  void read(std::uint64_t, std::span<std::byte>) const override {}
  std::uint64_t granule() const override { return granule_; }
  bool is_sequential() const override { return is_sequential_; }
  std::optional<Location> location() const override {
    return granule_ == 1 && !is_sequential_ ? std::optional(Location{file_, 100}) : std::nullopt;
  }

 private:
  std::uint64_t size_;
  std::string file_;
  std::uint64_t granule_;
  bool is_sequential_;
};

struct Job {
  Job(Checkpoint given, unsigned ranks, const std::vector<RankRule>& rules, unsigned ranks_a_node, Need need)
      : checkpoint(std::move(given)), plan(plan_ranks(checkpoint, ranks, rules)), extents(extents_of(checkpoint)) {
    demand.needs.assign(ranks, std::vector<Need>(checkpoint.size(), need));
    for (unsigned rank = 0; rank < ranks; ++rank) demand.node_of.push_back(rank / ranks_a_node * ranks_a_node);
    demand.readers.resize(ranks);
    std::iota(demand.readers.begin(), demand.readers.end(), 0u);
  }

  Checkpoint checkpoint;
  RankPlan plan;
  Extents extents;
  Demand demand{plan, extents, {}, {}, {}};
};

const std::vector<RankRule> kRules = {
    {"*.rows", RankSplit::rows}, {"*.columns", RankSplit::columns, 3}, {"*.{n}.w", RankSplit::expert}};

Checkpoint random_checkpoint(std::mt19937& random) {
  Checkpoint checkpoint;
  const auto number = [&](unsigned most) { return 1 + random() % most; };
  for (int i = 0; i < 40; ++i) {
    const char* const ends[] = {".rows", ".columns", ".whole"};
    std::string name = std::to_string(i) + ends[random() % 3];
    if (i % 5 == 0) name = "e." + std::to_string(i) + ".w";
    const Shape shape{number(60), number(7), number(50)};
    const std::uint64_t size = *shape.numel() * 4;
    const std::uint64_t granule = i % 7 == 0 ? 64 * number(20) : 1;
    checkpoint.tensors.insert(
        name, Tensor(DType::f32, shape,
                     std::make_shared<PlacedStorage>(size, "f" + std::to_string(i % 3) + std::to_string(i), granule,
                                                     i % 11 == 0)));
  }
  return checkpoint;
}

// Every byte of every part reaches each of its targets exactly once, in ascending order for each reader.
void expect_complete(const Job& job, const Schedule& schedule) {
  const Targets targets(job.demand);
  const TensorIndex index(job.demand);
  std::map<std::tuple<std::size_t, std::size_t, unsigned>, std::vector<std::pair<std::uint64_t, std::uint64_t>>>
      arrived;
  for (const unsigned reader : job.demand.readers) {
    for (const ReadPiece& piece : schedule.pieces[reader]) {
      for (const ReadItem& item : piece) {
        for_each_delivery(job.demand, targets, index, reader, item, [&](const Delivery& delivery) {
          const auto& [tensor, part, rank, is_shared] = delivery.target;
          const PartForm form = form_of(job.plan.tensors[tensor], job.plan.tensors[tensor].parts[part]);
          arrived[{tensor, part, rank}].emplace_back(form.before(delivery.first), form.before(delivery.end));
          if (is_shared) {
            EXPECT_EQ(job.demand.node_of[delivery.receiver], job.demand.node_of[rank]);
          } else {
            EXPECT_EQ(delivery.receiver, rank);
          }
        });
      }
    }
  }
  for (std::size_t tensor = 0; tensor < job.plan.tensors.size(); ++tensor) {
    for (std::size_t part = 0; part < job.plan.tensors[tensor].parts.size(); ++part) {
      const RankPart& planned = job.plan.tensors[tensor].parts[part];
      if (planned.bytes == 0) continue;
      targets.of_part(tensor, part, [&](const Target& target) {
        auto& ranges = arrived[{tensor, part, target.rank}];
        std::ranges::sort(ranges);
        std::uint64_t end = 0;
        for (const auto& [first, behind] : ranges) {
          EXPECT_EQ(first, end) << job.plan.tensors[tensor].name;
          end = behind;
        }
        EXPECT_EQ(end, planned.bytes) << job.plan.tensors[tensor].name;
      });
    }
  }
}

TEST(ASchedule, BringsEveryByteToEveryRankOnce) {
  std::mt19937 random(25);
  for (const unsigned ranks : {1u, 2u, 3u, 8u, 13u}) {
    for (const unsigned ranks_a_node : {1u, 2u, 4u, 16u}) {
      for (const Need need : {Need::copy, Need::view}) {
        const Job job(random_checkpoint(random), ranks, kRules, ranks_a_node, need);
        expect_complete(job, make_schedule(job.demand, 1000));
        expect_complete(job, make_schedule(job.demand, 100'000));
      }
    }
  }
}

TEST(ASchedule, BringsWhatSomeRanksNeedToThemAndReadsNothingElse) {
  std::mt19937 random(26);
  for (int round = 0; round < 20; ++round) {
    Job job(random_checkpoint(random), 6, kRules, 3, Need::none);
    for (auto& needs : job.demand.needs) {
      for (Need& need : needs) need = static_cast<Need>(random() % 3);
    }
    expect_complete(job, make_schedule(job.demand, 5000));
  }
  const Job nothing(random_checkpoint(random), 6, kRules, 3, Need::none);
  EXPECT_EQ(make_schedule(nothing.demand, 5000).read, 0u);
}

Checkpoint checkpoint_of(const std::vector<std::pair<std::string, StoragePtr>>& tensors) {
  Checkpoint checkpoint;
  for (const auto& [name, storage] : tensors)
    checkpoint.tensors.insert(name, Tensor(DType::u8, {storage->size_bytes() / 10, 10}, storage));
  return checkpoint;
}

TEST(ASchedule, NeverCutsAGranule) {
  const Job job(checkpoint_of({{"a.rows", std::make_shared<PlacedStorage>(100'000, "f", 700)},
                               {"b.whole", std::make_shared<PlacedStorage>(70'000, "g", 300)}}),
                4, kRules, 1, Need::copy);
  const Schedule schedule = make_schedule(job.demand, 9000);
  std::uint64_t read = 0;
  for (unsigned rank = 0; rank < 4; ++rank) {
    read += schedule.read_by(rank);
    for (const ReadPiece& piece : schedule.pieces[rank]) {
      for (const ReadItem& item : piece) {
        const Extent& extent = job.extents.all[item.extent];
        EXPECT_EQ(item.first % extent.granule, 0u);
        EXPECT_TRUE((item.first + item.size) % extent.granule == 0 || item.first + item.size == extent.size);
      }
    }
  }
  EXPECT_EQ(read, 170'000u);
  expect_complete(job, schedule);
}

TEST(ASchedule, GivesAStreamToOneRankInOrder) {
  const Job job(checkpoint_of({{"a.rows", std::make_shared<PlacedStorage>(100'000, "f", 1, true)}}), 4, kRules, 1,
                Need::copy);
  const Schedule schedule = make_schedule(job.demand, 9000);
  unsigned readers = 0;
  for (unsigned rank = 0; rank < 4; ++rank) {
    if (schedule.pieces[rank].empty()) continue;
    ++readers;
    std::uint64_t next = 0;
    for (const ReadPiece& piece : schedule.pieces[rank]) {
      for (const ReadItem& item : piece) {
        EXPECT_EQ(item.first, next);
        next += item.size;
      }
    }
    EXPECT_EQ(next, 100'000u);
  }
  EXPECT_EQ(readers, 1u);
}

TEST(ASchedule, SendsWhatANodeSharesToOneOfItsRanksOnly) {
  const auto tensors = [] { return checkpoint_of({{"a.whole", std::make_shared<PlacedStorage>(8'000'000, "f")}}); };
  const RankReport shared = planned_traffic(tensors(), 8, {}, 4);
  const RankReport copied = planned_traffic(tensors(), 8, {}, 4, {.share = false});
  EXPECT_EQ(shared.total().read, 8'000'000u);
  EXPECT_EQ(shared.total().received, 8'000'000u);  // each half, by the other node
  EXPECT_EQ(shared.total().held, 16'000'000u);
  EXPECT_EQ(copied.total().received, 7u * 8'000'000);
  EXPECT_EQ(copied.total().held, 8u * 8'000'000);
  EXPECT_LE(shared.imbalance(&RankTraffic::received), 1.001);
}

TEST(ASchedule, ReadsEverythingOncePerNodeIfToldTo) {
  const Checkpoint tensors = checkpoint_of({{"a.whole", std::make_shared<PlacedStorage>(8'000'000, "f")},
                                            {"b.rows", std::make_shared<PlacedStorage>(8'000'000, "g")}});
  const RankReport report = planned_traffic(tensors, 8, kRules, 4, {.read_once = ReadOnce::node});
  EXPECT_EQ(report.total().read, 2u * 8'000'000 + 8'000'000);
  EXPECT_EQ(report.total().received, 0u + report.total().sent);
}

TEST(ASchedule, RefusesANodeWithoutRanks) {
  EXPECT_ERROR(planned_traffic(Checkpoint(), 8, {}, 0), Errc::invalid_argument, "at least one rank");
}

}  // namespace
}  // namespace ballast::test
