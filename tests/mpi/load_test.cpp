// Every rank ends with the bytes that the serial load of its slice gives, whatever the format and the cut.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "any_model.hpp"
#include "builders/gguf_file.hpp"
#include "builders/safetensors_file.hpp"
#include "builders/torch_file.hpp"
#include "support/tensor_values.hpp"

namespace ballast::test {
namespace {

struct Both {
  AnyModel together, alone;
  mpi::Loaded loaded;
};

// Loads the slice of this rank together with the other ranks, and alone.
Both load_both(const std::string& target, const std::vector<RankRule>& rules, const mpi::LoadOptions& options = {}) {
  const Checkpoint checkpoint = open(target, options.open);
  const RankPlan plan = plan_ranks(checkpoint, world_size(), rules);
  Both both;
  const Checkpoint mine = take_slice(checkpoint, plan.rank(world_rank()));
  both.together = with_names_of(mine);
  both.alone = with_names_of(mine);
  LoadStateDictOptions serial = options.load;
  serial.slice = plan.rank(world_rank());
  load_state_dict(both.alone, checkpoint, serial);
  both.loaded = mpi::load_state_dict(MPI_COMM_WORLD, both.together, target, rules, options);
  return both;
}

void expect_equal(const Both& both) {
  EXPECT_FALSE(both.alone.tensors.empty());
  for (const auto& [name, tensor] : both.alone.tensors) {
    const Tensor& other = both.together.tensors.at(name);
    EXPECT_EQ(other.dtype(), tensor.dtype()) << name;
    EXPECT_EQ(to_string(other.shape()), to_string(tensor.shape())) << name;
    EXPECT_TRUE(bytes_of(other) == bytes_of(tensor)) << name << " on rank " << world_rank();
  }
}

const std::vector<RankRule> kRules = {{"*.rows", RankSplit::rows},
                                      {"*.heads", RankSplit::rows, 24},
                                      {"*.columns", RankSplit::columns},
                                      {"*.blocks", RankSplit::columns, 64},
                                      {"*.experts.{n}.*", RankSplit::expert}};

// Tensors of each kind of cut; larger than what opening reads of a file.
SafetensorsFile many_tensors(std::string_view prefix) {
  SafetensorsFile file;
  const auto named = [&](std::string_view name) { return std::string(prefix) + std::string(name); };
  file.tensor(named("a.rows"), "F32", {97, 64}).tensor(named("b.heads"), "BF16", {100, 32});
  file.tensor(named("c.columns"), "I16", {33, 130}).tensor(named("d.columns"), "F32", {3, 5, 40});
  file.tensor(named("e.whole"), "F32", {1000})
      .tensor(named("f.empty"), "F32", {0, 4})
      .tensor(named("g.scalar"), "I64", {});
  for (int expert = 0; expert < 5; ++expert)
    file.tensor(named("m.experts." + std::to_string(expert) + ".w"), "F8_E4M3", {40, 50});
  return file.tensor(named("n.large"), "U8", {300, 1000}).tensor(named("o.rows"), "U8", {2, 70'000});
}

TEST(LoadingTogether, GivesEveryRankItsSliceOfASafetensorsFile) {
  const SharedDir dir;
  expect_equal(load_both(dir.write("model.safetensors", many_tensors("x.").text()), kRules));
}

TEST(LoadingTogether, GivesTheSameWithoutRules) {
  const SharedDir dir;
  expect_equal(load_both(dir.write("model.safetensors", many_tensors("x.").text()), {}));
}

TEST(LoadingTogether, GivesTheSameWhateverTheMemoryForBuffers) {
  const SharedDir dir;
  const std::string path = dir.write("model.safetensors", many_tensors("x.").text());
  expect_equal(load_both(path, kRules, {.memory_bytes = 1}));
  expect_equal(load_both(path, kRules, {.share = false, .memory_bytes = 1}));
  expect_equal(load_both(path, kRules, {.read_once = mpi::ReadOnce::node}));
}

TEST(LoadingTogether, ReadsShardsThroughTheirIndex) {
  const SharedDir dir;
  dir.write("model-00001-of-00002.safetensors", many_tensors("x.").text());
  dir.write("model-00002-of-00002.safetensors", many_tensors("y.").text());
  expect_equal(load_both(dir / "", kRules));
}

TEST(LoadingTogether, ReadsStoredAndDeflatedMembersOfATorchFile) {
  const SharedDir dir;
  const std::string data(120'000, 'x');
  std::string other;
  for (unsigned i = 0; i < 120'000; ++i) other += static_cast<char>(i * i >> 5);
  const auto object = py::dict({{"a.rows", py::tensor(py::storage("Float", "0", 30'000), 0, {100, 300}, {300, 1})},
                                {"b.columns", py::tensor(py::storage("Float", "0", 30'000), 0, {300, 100}, {1, 300})},
                                {"c.whole", py::tensor(py::storage("Float", "1", 30'000), 1000, {29'000}, {1})},
                                {"d.rows", py::tensor(py::storage("Float", "1", 30'000), 0, {10, 10}, {1000, 2})}});
  const std::string stored = TorchZip().object(object).record("0", data).record("1", other).text();
  expect_equal(load_both(dir.write("stored.pt", stored), kRules));

  ZipFile deflated;
  deflated.stored("archive/data.pkl", py::pickle(object))
      .deflated("archive/data/0", data)
      .deflated("archive/data/1", other);
  deflated.stored("archive/version", "3\n");
  expect_equal(load_both(dir.write("deflated.pt", deflated.text()), kRules));
}

TEST(LoadingTogether, KeepsTheBlocksOfAGguf) {
  const SharedDir dir;
  const std::string path = dir.write("model.gguf", GgufBuilder()
                                                       .tensor("a.rows", kQ4_K, {512, 101})
                                                       .tensor("b.columns", kQ8_0, {256, 70})
                                                       .tensor("c.blocks", kQ4_0, {192, 33})
                                                       .tensor("d.whole", kF32, {5000})
                                                       .text());
  expect_equal(load_both(path, kRules));
}

TEST(LoadingTogether, DecodesTheBlocksOfAGguf) {
  const SharedDir dir;
  const std::string path = dir.write(
      "model.gguf", GgufBuilder().tensor("a.rows", kQ8_0, {512, 101}).tensor("b.columns", kQ4_0, {256, 70}).text());
  expect_equal(load_both(path, kRules, {.load = {.dtype_policy = DTypePolicy::to_one, .dtype = DType::bf16}}));
  expect_equal(
      load_both(path, kRules, {.load = {.assign = false, .dtype_policy = DTypePolicy::to_one, .dtype = DType::f32}}));
}

TEST(LoadingTogether, TakesRenamedAndCastTensors) {
  const SharedDir dir;
  const std::string path = dir.write("model.safetensors", many_tensors("module.x.").text());
  const Checkpoint checkpoint = open(path);
  const RankPlan plan = plan_ranks(checkpoint, world_size(), kRules);
  const auto slice = plan.rank(world_rank());
  struct Small {
    Tensor rows, whole;
    auto fields() { return ballast::fields(field("first", rows), field("e.whole", whole)); }
  } together, alone;
  LoadStateDictOptions options;
  options.strict = false;
  options.dtype_policy = DTypePolicy::to_one;
  options.dtype = DType::f16;
  options.strip_prefix = "module.x.";
  options.key_mapping = {{"a\\.rows", "first"}};
  options.find_prefix = false;
  const auto loaded = mpi::load_state_dict(MPI_COMM_WORLD, together, path, kRules, {.load = options, .share = false});
  options.slice = slice;
  const LoadReport report = load_state_dict(alone, checkpoint, options);
  EXPECT_TRUE(bytes_of(together.rows) == bytes_of(alone.rows));
  EXPECT_TRUE(bytes_of(together.whole) == bytes_of(alone.whole));
  EXPECT_EQ(loaded.report.loaded, report.loaded);
  EXPECT_EQ(loaded.report.cast, report.cast);
  EXPECT_EQ(loaded.report.unexpected, report.unexpected);
  EXPECT_EQ(loaded.report.renamed.size(), report.renamed.size());
  // Nothing else is read: 97 x 64 and 1000 floats.
  EXPECT_EQ(loaded.ranks.total().read, (97u * 64 + 1000) * 4);
}

TEST(LoadingTogether, FillsMemoryOfTheModelsOwn) {
  const SharedDir dir;
  const std::string path = dir.write("model.safetensors", many_tensors("").text());
  struct Own {
    std::vector<float> rows, whole;
    std::vector<std::uint8_t> large;
    auto fields() { return ballast::fields(field("a.rows", rows), field("e.whole", whole), field("n.large", large)); }
  } together, alone;
  LoadStateDictOptions options;
  options.strict = false;
  mpi::load_state_dict(MPI_COMM_WORLD, together, path, kRules, {.load = options});
  const Checkpoint checkpoint = open(path);
  options.slice = plan_ranks(checkpoint, world_size(), kRules).rank(world_rank());
  load_state_dict(alone, checkpoint, options);
  EXPECT_EQ(std::memcmp(together.rows.data(), alone.rows.data(), alone.rows.size() * 4), 0);
  EXPECT_EQ(together.rows.size(), alone.rows.size());
  EXPECT_EQ(std::memcmp(together.whole.data(), alone.whole.data(), 4000), 0);
  EXPECT_EQ(together.large, alone.large);
}

// Memory that is new, and empty, whenever it is asked for.
struct Fresh {
  std::vector<float> values;
  int prepared = 0;
};

}  // namespace
}  // namespace ballast::test

template <>
struct ballast::TensorAccess<ballast::test::Fresh> {
  using Fresh = ballast::test::Fresh;
  static DType dtype(const Fresh&) { return DType::f32; }
  static std::optional<Shape> shape(const Fresh&) { return std::nullopt; }
  static std::span<std::byte> prepare(Fresh& fresh, DType, const Shape& shape) {
    ++fresh.prepared;
    fresh.values = std::vector<float>(*shape.numel());
    return std::as_writable_bytes(std::span(fresh.values));
  }
  static std::span<const std::byte> bytes(const Fresh& fresh) { return std::as_bytes(std::span(fresh.values)); }
};

namespace ballast::test {
namespace {

TEST(LoadingTogether, AsksForMemoryOfTheModelsOwnOnce) {
  const SharedDir dir;
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  const std::string path = dir.write("model.safetensors", SafetensorsFile().values("w", "F32", {2, 3}, values).text());
  struct Model {
    Fresh w;
    auto fields() { return ballast::fields(field("w", w)); }
  } model;
  mpi::load_state_dict(MPI_COMM_WORLD, model, path, {});
  EXPECT_EQ(model.w.values, values);
  EXPECT_EQ(model.w.prepared, 1);
}

TEST(LoadingTogether, SharesTensorsOfOneStorage) {
  const SharedDir dir;
  std::string data;
  for (int i = 0; i < 400'000; ++i) data += static_cast<char>(i * 7 >> 3);
  const auto all = [](std::int64_t offset) {
    return py::tensor(py::storage("Float", "0", 100'000), offset, {90'000}, {1});
  };
  const std::string path = dir.write(
      "tied.pt",
      TorchZip().object(py::dict({{"a", all(0)}, {"b", all(0)}, {"c", all(10'000)}})).record("0", data).text());
  const Both both = load_both(path, {});
  expect_equal(both);
  EXPECT_EQ(both.together.tensors.at("a").storage(), both.together.tensors.at("b").storage());
  EXPECT_EQ(both.loaded.ranks.total().read, 400'000u);  // once, although three tensors lie there
}

TEST(LoadingTogether, GivesNeighboursSeveralModelsWithCommunicatorsOfTheirOwn) {
  const SharedDir dir;
  const std::string even = dir.write("even.safetensors", many_tensors("even.").text());
  const std::string odd = dir.write("odd.safetensors", many_tensors("odd.").text());
  MPI_Comm half = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, static_cast<int>(world_rank() % 2), 0, &half);
  int rank = 0, size = 0;
  MPI_Comm_rank(half, &rank);
  MPI_Comm_size(half, &size);
  const std::string path = world_rank() % 2 == 0 ? even : odd;
  const Checkpoint checkpoint = open(path);
  const auto slice = plan_ranks(checkpoint, static_cast<unsigned>(size), kRules).rank(static_cast<unsigned>(rank));
  const Checkpoint mine = take_slice(checkpoint, slice);
  AnyModel model = with_names_of(mine);
  mpi::load_state_dict(half, model, path, kRules);
  for (const auto& [name, tensor] : mine)
    EXPECT_TRUE(bytes_of(model.tensors.at(std::string(name))) == bytes_of(tensor));
  MPI_Comm_free(&half);
}

}  // namespace
}  // namespace ballast::test
