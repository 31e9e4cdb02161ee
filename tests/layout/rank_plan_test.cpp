// Plans of what each rank of a parallel model needs.
#include <ballast/rank_plan.hpp>

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include <ballast/ballast.hpp>

#include "builders/temp_dir.hpp"
#include "support/expect_error.hpp"
#include "support/tensor_values.hpp"

namespace ballast {
namespace {

using test::bytes_of;
using test::numbers;

constexpr const char* kRules = R"({"rules": [
  {"match": "*.q.weight", "split": "rows", "unit": 2},
  {"match": "*.o.weight", "split": "columns"},
  {"match": "*.o.bias", "split": "columns"},
  {"match": "*.experts.{n}.*", "split": "expert"},
  {"match": "*.stacked", "split": "expert"},
  {"match": "*", "split": "replicated"}]})";

Checkpoint model() {
  Checkpoint checkpoint;
  float first = 0;
  const auto add = [&](const std::string& name, const Shape& shape, DType dtype = DType::f32) {
    checkpoint.tensors.insert(name, numbers(shape, first += 1000, dtype));
  };
  for (const std::string layer : {"l.0", "l.1"}) {
    add(layer + ".q.weight", {18, 6});  // 9 units of two rows: no multiple of any number of ranks
    add(layer + ".o.weight", {5, 16}, DType::bf16);
    add(layer + ".o.bias", {5});
    for (int e = 0; e < 11; ++e) add(layer + ".experts." + std::to_string(e) + ".w", {3, 2});
    add(layer + ".stacked", {8, 3, 2});
    add(layer + ".norm", {7});
  }
  return checkpoint;
}

class Ranks : public testing::TestWithParam<unsigned> {
 protected:
  Checkpoint sharded() const {
    std::filesystem::create_directory(folder_ / "sharded");
    save(model(), folder_ / "sharded/", {.max_shard_bytes = 500});
    return open(folder_ / "sharded");
  }

 private:
  test::TempDir folder_;
};

// Reads a tensor from the ranges of the files alone.
std::vector<std::byte> read_ranges(const std::vector<FileRange>& ranges) {
  std::vector<std::byte> bytes;
  for (const FileRange& range : ranges) {
    std::ifstream file(range.file, std::ios::binary);
    for (std::uint64_t i = 0; i < range.count; ++i) {
      std::vector<std::byte> piece(range.size);
      file.seekg(static_cast<std::streamoff>(range.offset + i * range.stride));
      file.read(reinterpret_cast<char*>(piece.data()), static_cast<std::streamsize>(piece.size()));
      EXPECT_TRUE(file.good());
      bytes.insert(bytes.end(), piece.begin(), piece.end());
    }
  }
  return bytes;
}

TEST_P(Ranks, HaveRangesThatAreDisjointAndCoverEverything) {
  const Checkpoint checkpoint = sharded();
  ASSERT_GT(checkpoint.shards, 3u);
  const RankPlan plan = plan_ranks(checkpoint, GetParam(), parse_rank_rules(kRules));
  ASSERT_EQ(plan.tensors.size(), checkpoint.size());
  for (const RankedTensor& tensor : plan.tensors) {
    SCOPED_TRACE(tensor.name);
    EXPECT_TRUE(tensor.is_plain);
    std::map<std::string, std::set<std::uint64_t>> seen;
    std::uint64_t bytes = 0, taken = 0;
    std::set<unsigned> ranks;
    for (const RankPart& part : tensor.parts) {
      for (const unsigned rank : part.ranks) EXPECT_TRUE(ranks.insert(rank).second) << rank;
      for (const FileRange& range : part.ranges) {
        for (std::uint64_t i = 0; i < range.count; ++i) {
          for (std::uint64_t b = 0; b < range.size; ++b)
            EXPECT_TRUE(seen[range.file].insert(range.offset + i * range.stride + b).second);
        }
      }
      bytes += part.bytes;
    }
    for (const auto& [file, set] : seen) taken += set.size();
    EXPECT_EQ(bytes, checkpoint.at(tensor.name).nbytes());
    EXPECT_EQ(taken, bytes);
    const bool is_dealt_out = tensor.split == RankSplit::expert && tensor.parts.size() == 1;
    EXPECT_EQ(ranks.size(), is_dealt_out && GetParam() > 1 ? 1u : GetParam());
  }
}

// Views with a stride of 0 are read as often as they repeat.
TEST(RankPlan, OfRepeatedBytesHasRangesThatRepeat) {
  const test::TempDir folder;
  Checkpoint plain;
  plain.tensors.insert("w", test::numbers({6}));
  save(plain, folder / "w.safetensors", {.durable = false});
  const Tensor whole = open(folder / "w.safetensors").at("w");
  Checkpoint views;
  const auto add = [&](const std::string& name, const Shape& shape, const Strides& strides) {
    views.tensors.insert(name, Tensor(whole.dtype(), shape, strides, whole.storage(), whole.offset()));
  };
  add("rows", {5, 3}, {0, 1});
  add("scalar", {2, 4}, {0, 0});
  add("middle", {2, 4, 3}, {3, 0, 1});
  add("columns", {3, 2}, {1, 0});
  for (const RankedTensor& tensor : plan_ranks(views, 1, {}).tensors) {
    EXPECT_TRUE(tensor.is_plain);
    EXPECT_EQ(read_ranges(tensor.parts.at(0).ranges), bytes_of(views.at(tensor.name))) << tensor.name;
  }
}

TEST_P(Ranks, AssembleToTheWhole) {
  const Checkpoint checkpoint = sharded();
  const RankPlan plan = plan_ranks(checkpoint, GetParam(), parse_rank_rules(kRules));
  std::vector<Checkpoint> parts;
  for (unsigned rank = 0; rank < GetParam(); ++rank) {
    parts.push_back(take_slice(checkpoint, plan.rank(rank)));
    std::uint64_t bytes = 0;
    for (const auto& [name, tensor] : parts.back()) bytes += tensor.nbytes();
    EXPECT_EQ(bytes, plan.bytes_of_rank(rank));
  }
  for (const RankedTensor& tensor : plan.tensors) {
    SCOPED_TRACE(tensor.name);
    const Tensor& whole = checkpoint.at(tensor.name);
    for (const RankPart& part : tensor.parts) {
      const Tensor& piece = parts[part.ranks.front()].at(tensor.name);
      EXPECT_EQ(piece.shape(), part.shape);
      EXPECT_EQ(bytes_of(piece), read_ranges(part.ranges));
      if (!part.cut) {
        EXPECT_EQ(bytes_of(piece), bytes_of(whole));
      }
    }
    if (!tensor.parts.front().cut) continue;
    // The pieces are joined row by row of the dimensions before the one that is cut.
    const std::size_t axis = tensor.parts.front().cut->axis;
    std::uint64_t rounds = 1;
    for (std::size_t i = 0; i < axis; ++i) rounds *= whole.shape()[i];
    std::vector<std::byte> assembled;
    for (std::uint64_t round = 0; round < rounds; ++round) {
      for (unsigned rank = 0; rank < GetParam(); ++rank) {
        const std::vector<std::byte> piece = bytes_of(parts[rank].at(tensor.name));
        const auto first = piece.begin() + static_cast<std::ptrdiff_t>(piece.size() / rounds * round);
        assembled.insert(assembled.end(), first, first + static_cast<std::ptrdiff_t>(piece.size() / rounds));
      }
    }
    EXPECT_EQ(assembled, bytes_of(whole));
  }
}

INSTANTIATE_TEST_SUITE_P(Of, Ranks, testing::Values(1u, 2u, 4u, 8u));

TEST(RankPlan, CutsAsEvenlyAsUnitsAllow) {
  Checkpoint checkpoint;
  checkpoint.tensors.insert("a", numbers({22, 2}));
  const RankPlan plan = plan_ranks(checkpoint, 3, {{"a", RankSplit::rows, 4}});
  std::vector<RankCut> cuts;
  for (const RankPart& part : plan.tensors[0].parts) cuts.push_back(*part.cut);
  EXPECT_EQ(cuts, (std::vector<RankCut>{{0, 0, 8}, {0, 8, 8}, {0, 16, 6}}));
}

TEST(RankPlan, DoesNotCutBlocks) {
  Checkpoint checkpoint;
  checkpoint.tensors.insert("a", numbers({2, 256}, 0, DType::q8_0));
  const RankPlan plan = plan_ranks(checkpoint, 3, {{"a", RankSplit::columns, 1}});
  for (const RankPart& part : plan.tensors[0].parts) EXPECT_EQ(part.cut->first % 32, 0u);
  EXPECT_EQ(plan.bytes_of_rank(0), 3 * 34u * 2);
}

TEST(RankPlan, OfMoreRanksThanRowsLeavesSomeRanksWithoutRows) {
  Checkpoint checkpoint;
  checkpoint.tensors.insert("a", numbers({2, 2}));
  const RankPlan plan = plan_ranks(checkpoint, 4, {{"a", RankSplit::rows, 1}});
  EXPECT_EQ(plan.tensors[0].parts[3].shape, Shape({0, 2}));
  EXPECT_EQ(take_slice(checkpoint, plan.rank(3)).at("a").numel(), 0u);
  EXPECT_EQ(plan_ranks(checkpoint, 4, {{"a", RankSplit::rows, ~std::uint64_t{0}}}).tensors[0].parts[3].shape,
            Shape({2, 2}));
}

TEST(RankPlan, OfAComputedTensorNamesAllRangesThatItIsMadeOf) {
  test::TempDir folder;
  Checkpoint checkpoint;
  checkpoint.tensors.insert("a", numbers({4, 4}));
  save(checkpoint, folder / "a.safetensors");
  const Checkpoint cast_one = cast(open(folder / "a.safetensors"), DType::bf16);
  const RankPlan plan = plan_ranks(cast_one, 2, {{"a", RankSplit::rows, 1}});
  EXPECT_FALSE(plan.tensors[0].is_plain);
  ASSERT_EQ(plan.tensors[0].parts[1].ranges.size(), 1u);
  EXPECT_EQ(plan.tensors[0].parts[1].ranges[0].file, folder / "a.safetensors");
}

TEST(RankPlan, IsLoadedRankByRank) {
  struct Model {
    Tensor weight;
    auto fields() { return ballast::fields(field("a.q.weight", weight)); }
  } model;
  Checkpoint checkpoint;
  checkpoint.tensors.insert("a.q.weight", numbers({4, 2}));
  checkpoint.tensors.insert("a.experts.0.w", numbers({4, 2}));
  const RankPlan plan = plan_ranks(checkpoint, 2, parse_rank_rules(kRules));
  LoadStateDictOptions options;
  options.slice = plan.rank(1);
  load_state_dict(model, checkpoint, options);  // the expert belongs to another rank
  EXPECT_EQ(model.weight.shape(), Shape({2, 2}));
  EXPECT_EQ(bytes_of(model.weight), bytes_of(checkpoint.at("a.q.weight").slice(parse_slice("2:"))));
}

TEST(RankPlan, RefusesWhatMakesNoSense) {
  EXPECT_ERROR(plan_ranks({}, 0, {}), Errc::invalid_argument, "1 to 65536 ranks, not 0");
  EXPECT_ERROR(plan_ranks({}, 2, {{.match = "*", .split = RankSplit::rows, .unit = 0}}), Errc::invalid_argument,
               "the unit of a rule is at least 1");
  EXPECT_ERROR(plan_ranks({}, 2, {}).rank(2), Errc::invalid_argument, "there is no rank 2");
  EXPECT_ERROR(take_slice({}, {{"a", std::nullopt}}), Errc::not_found, "tensor \"a\", which is not there");
  EXPECT_ERROR(parse_rank_rules(R"({"rules": [{"match": "*", "split": "diagonal"}]})"), Errc::malformed,
               "rule 1: \"diagonal\" is no split");
  EXPECT_ERROR(parse_rank_rules(R"({"rules": [{"match": "*", "split": "rows", "unit": 0}]})"), Errc::malformed,
               "\"unit\" is at least 1");
  EXPECT_ERROR(parse_rank_rules(R"({"rules": [{"match": "*", "splits": "rows"}]})"), Errc::malformed,
               "\"splits\" is no member");
}

}  // namespace
}  // namespace ballast
