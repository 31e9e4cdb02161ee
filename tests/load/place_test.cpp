// Tensors on the device where they are wanted: devices by name, and the ways of reading into memory.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <ballast/ballast.hpp>

#include "builders/safetensors_file.hpp"
#include "builders/temp_dir.hpp"
#include "io/page_cache.hpp"
#include "load/place.hpp"
#include "support/counting_source.hpp"
#include "support/expect_error.hpp"
#include "support/fake_storages.hpp"
#include "support/opencl_device.hpp"
#include "support/tensor_values.hpp"

namespace ballast {
namespace {

using test::bytes_of;
using test::OnOpenCl;
using test::some_bytes;
using test::some_tensor;
using test::TempDir;

struct Placed {
  Tensor weight, bias;
  std::vector<float> table;
};
BALLAST_FIELDS(Placed, weight, bias, table)

Tensor floats(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i);
  return Tensor::from_values<float>(DType::f32, {count}, values);
}

// Tensors of all sizes, so that blocks of the file hold many and tensors take many blocks; one has two names.
Checkpoint some_checkpoint() {
  Checkpoint checkpoint;
  checkpoint.tensors.insert("large", some_tensor((9 << 20) + 5, 1));
  for (unsigned i = 0; i < 50; ++i)
    checkpoint.tensors.insert("small." + std::to_string(i), some_tensor(1 + 977 * i, i + 2));
  checkpoint.tensors.insert("half", floats(700'000).to(DType::bf16));
  checkpoint.tensors.insert("large.again", Tensor(checkpoint.at("large")));
  checkpoint.tensors.insert("none", Tensor(DType::f32, {0, 3}, nullptr));
  return checkpoint;
}

void expect_equal(const StateDict& state, const Checkpoint& expected) {
  ASSERT_EQ(state.size(), expected.size());
  for (const auto& [name, tensor] : state) {
    EXPECT_EQ(tensor.dtype(), expected.at(name).dtype()) << name;
    EXPECT_EQ(tensor.shape(), expected.at(name).shape()) << name;
    EXPECT_TRUE(bytes_of(tensor) == bytes_of(expected.at(name))) << name;
  }
}

// Drops the file from the page cache, if its file system allows that.
void make_cold(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY);
  fsync(file);
  posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
  close(file);
}

TEST(Place, AnnouncesWhatItWillRead) {
  test::SafetensorsFile file;
  for (int i = 0; i < 100; ++i) file.tensor("small." + std::to_string(i), "F32", {25});
  const auto source = std::make_shared<test::CountingSource>(test::source_named("far", file.text()), 4096);
  const Checkpoint checkpoint = open(source);
  source->forget();
  expect_equal(realize(checkpoint.tensors, {.threads = 2}), checkpoint);
  std::uint64_t announced = 0;
  for (const ByteRange& range : source->announced()) announced += range.size;
  EXPECT_EQ(announced, 100u * 100);
}

TEST(Load, ReadsIntoMemoryWhenTold) {
  const TempDir folder;
  const Checkpoint checkpoint = some_checkpoint();
  for (const char* name : {"m.safetensors", "m.pt"}) {
    save(checkpoint, folder / name);
    for (const bool is_cold : {false, true}) {
      for (const unsigned threads : {0u, 1u}) {
        if (is_cold) make_cold(folder / name);
        const StateDict state = load(folder / name, {.mode = LoadMode::read, .open = {.threads = threads}});
        expect_equal(state, checkpoint);
        EXPECT_FALSE(state.at("large").storage()->location()) << "no longer in the file";
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(state.at("half").bytes().data()) % 8, 0u);
      }
    }
  }
}

// The file is large enough for a warm one to be copied around the cache, and for a cold one to be read in either way.
TEST(Load, GivesTheSameBytesInEveryWayOfReadingALargeFile) {
  constexpr std::size_t kCount = (std::size_t{126} << 18) + 3;
  const TempDir folder;
  Checkpoint checkpoint;
  checkpoint.tensors.insert("bias", some_tensor(5, 1));  // without it, all would lie on whole pages
  checkpoint.tensors.insert("table", floats(kCount));
  save(checkpoint, folder / "m.safetensors", {.durable = false});
  const auto is_right = [](std::span<const float> values) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (values[i] != static_cast<float>(i)) return false;
    }
    return values.size() == kCount;
  };
  for (const bool is_cold : {false, true}) {
    for (const unsigned threads : {0u, 1u}) {
      if (is_cold) make_cold(folder / "m.safetensors");
      Placed model;
      load_state_dict(model, open(folder / "m.safetensors"),
                      {.strict = false, .mode = LoadMode::read, .consume = true, .threads = threads});
      EXPECT_TRUE(is_right(model.table)) << (is_cold ? "cold, " : "warm, ") << threads << " threads";
    }
  }
  make_cold(folder / "m.safetensors");
  std::vector<float> tried(kCount);
  ProgressMeter meter({}, "reading", kCount * sizeof(float));
  const std::vector memory{std::as_writable_bytes(std::span(tried))};
  read_into({open(folder / "m.safetensors").at("table")}, memory,
            {.mode = LoadMode::read, .worth_a_trial = std::uint64_t{64} << 20}, meter);
  EXPECT_TRUE(is_right(tried)) << "after a trial of both ways";

  const Tensor realized = open(folder / "m.safetensors").at("table").realize();
  EXPECT_TRUE(is_right(realized.as<float>()));
}

TEST(Load, LooksAtThePageCacheWhenItMayChoose) {
  const TempDir folder;
  save(some_checkpoint(), folder / "m.safetensors");
  {
    const StateDict warm = load(folder / "m.safetensors", {.mode = LoadMode::automatic});
    EXPECT_TRUE(warm.at("large").storage()->location()) << "a view of what is in memory already";
    expect_equal(warm, some_checkpoint());
  }
  // The system may fetch the file again at any moment, so one of a few attempts must see that it is cold.
  bool was_cold = false;
  for (int attempt = 0; attempt < 10; ++attempt) {
    make_cold(folder / "m.safetensors");  // a file that somebody has mapped would not become cold
    const int file = ::open((folder / "m.safetensors").c_str(), O_RDONLY);
    was_cold |= io::is_cold(file, 0, 9 << 20);
    close(file);
    const StateDict cold = load(folder / "m.safetensors", {.mode = LoadMode::automatic});
    expect_equal(cold, some_checkpoint());
    if (!cold.at("large").storage()->location()) return;  // read, not mapped
  }
  if (!was_cold) GTEST_SKIP() << "nothing is dropped from the page cache here";
  FAIL() << "a cold file was mapped ten times";
}

TEST(Load, SaysThatTheFileShrankMeanwhile) {
  const TempDir folder;
  save(some_checkpoint(), folder / "m.safetensors");
  const StateDict state = load(folder / "m.safetensors");
  make_cold(folder / "m.safetensors");
  ASSERT_EQ(truncate((folder / "m.safetensors").c_str(), 1 << 20), 0);
  Placed model;
  Checkpoint checkpoint;
  checkpoint.tensors.insert("weight", Tensor(state.at("large")));
  EXPECT_ERROR(load_state_dict(model, checkpoint, {.strict = false, .mode = LoadMode::read}), Errc::changed, "shrank");
  EXPECT_EQ(model.weight.numel(), 0u) << "and the model is as it was";
}

TEST(Load, ReportsProgressAndStopsWhenTold) {
  const TempDir folder;
  save(some_checkpoint(), folder / "m.pt");  // a format in which names share a tensor
  std::uint64_t done = 0, total = 0;
  const auto count = [&](const ProgressState& state) {
    done = state.done_bytes;
    total = state.total_bytes;
    return true;
  };
  load(folder / "m.pt", {.mode = LoadMode::read, .progress = count});
  EXPECT_EQ(done, total);
  EXPECT_GT(total, std::uint64_t{9} << 20);
  EXPECT_ERROR(load(folder / "m.pt", {.mode = LoadMode::read, .progress = [](const ProgressState&) { return false; }}),
               Errc::cancelled, "cancelled");
}

TEST(MapLocation, TakesTheFirstPatternThatMatches) {
  const TempDir folder;
  save(some_checkpoint(), folder / "m.safetensors");
  const StateDict state =
      load(folder / "m.safetensors", {.device = "meta", .map_location = {{"small.1?", "meta"}, {"small.*", "cpu"}}});
  EXPECT_FALSE(state.at("large").has_data());
  EXPECT_FALSE(state.at("small.12").has_data());
  EXPECT_TRUE(state.at("small.1").has_data());
}

TEST(MapLocation, GoesByTheNamesOfTheModel) {
  Placed model;
  Checkpoint checkpoint;
  checkpoint.tensors.insert("model.weight", floats(6));
  checkpoint.tensors.insert("model.bias", floats(2));
  checkpoint.tensors.insert("model.table", floats(4));
  const LoadReport report = load_state_dict(model, checkpoint, {.map_location = {{"weight", "meta"}}});
  EXPECT_FALSE(model.weight.has_data());
  EXPECT_EQ(model.bias.storage(), checkpoint.at("model.bias").storage());
  EXPECT_EQ(model.table, (std::vector<float>{0, 1, 2, 3}));
  EXPECT_EQ(report.bytes, 16u);
}

TEST(Cuda, SaysThatThereIsNoDriver) {
  if (device_count(Device::Kind::cuda) != 0) GTEST_SKIP() << "there is one";
  EXPECT_ERROR(floats(1).to("cuda:0"), Errc::unsupported, "there is no CUDA driver here: libcuda.so.1 was not found");
}

TEST_F(OnOpenCl, ACheckpointIsLoadedBitByBit) {
  const TempDir folder;
  const Checkpoint checkpoint = some_checkpoint();
  save(checkpoint, folder / "m.pt");
  for (const bool is_cold : {false, true}) {
    if (is_cold) make_cold(folder / "m.pt");
    const StateDict state = load(folder / "m.pt", {.device = "opencl", .map_location = {{"small.7", "cpu"}}});
    expect_equal(state, checkpoint);
    for (const auto& [name, tensor] : state)
      EXPECT_EQ(place_of(tensor).device, name == "small.7" ? "cpu" : "opencl:0") << name;
    EXPECT_EQ(place_of(state.at("large")).handle, place_of(state.at("large.again")).handle) << "one tensor";
  }
}

TEST_F(OnOpenCl, AModelIsFilledThereButForItsOwnMemory) {
  Placed model;
  Checkpoint checkpoint;
  checkpoint.tensors.insert("weight", floats(1'000'000).to(DType::f16));
  checkpoint.tensors.insert(
      "bias", Tensor(DType::u8, {70'000}, std::make_shared<test::DeflatedStorage>(some_bytes(70'000, 3))));
  checkpoint.tensors.insert("table", floats(5));
  const LoadReport report = load_state_dict(model, checkpoint, {.device = "opencl:0"});
  EXPECT_EQ(place_of(model.weight).device, Device("opencl:0"));
  EXPECT_TRUE(bytes_of(model.weight) == bytes_of(checkpoint.at("weight")));
  EXPECT_TRUE(bytes_of(model.bias) == some_bytes(70'000, 3));
  EXPECT_EQ(model.table.size(), 5u);
  EXPECT_EQ(report.bytes, 2'000'000u + 70'000 + 20);

  Checkpoint back;
  back.tensors = state_dict(model);
  const TempDir folder;
  save(back, folder / "back.safetensors");
  EXPECT_TRUE(diff(open(folder / "back.safetensors"), back).equal()) << "and is saved from there";
}

TEST(Load, GivesWhatEveryFunctionOnCheckpointsTakes) {
  const test::TempDir folder;
  StateDict state;
  state.insert("a.weight", Tensor::from_values<float>(DType::f32, {2}, std::vector<float>{1, 2}));
  state.insert("a.bias", Tensor::from_values<float>(DType::f32, {1}, std::vector<float>{3}));
  save(state, folder / "m.safetensors");
  const StateDict loaded = load(folder / "m.safetensors");
  EXPECT_TRUE(diff(loaded, state).equal());
  EXPECT_EQ(hash(loaded).digest, hash(state).digest);
  EXPECT_EQ(cast(loaded, DType::f16).at("a.weight").dtype(), DType::f16);
  EXPECT_TRUE(rename(loaded, {{"^a\\.", "b."}}).contains("b.bias"));
  EXPECT_EQ(select(loaded, {.include = {"*.bias"}}).size(), 1u);
}

}  // namespace
}  // namespace ballast
