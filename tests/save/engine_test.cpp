// One engine writes the bytes of every tensor, whatever they are made of.
#include "save/engine.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <mutex>

#include <ballast/ballast.hpp>

#include "builders/safetensors_file.hpp"
#include "builders/temp_dir.hpp"
#include "support/counting_source.hpp"
#include "support/expect_error.hpp"
#include "support/fake_storages.hpp"
#include "support/peak_memory.hpp"

namespace ballast {
namespace {

using test::some_bytes;

Tensor whole_storage(StoragePtr storage) {
  const std::uint64_t size = storage->size_bytes();
  return Tensor(DType::u8, {size}, std::move(storage));
}

std::vector<std::byte> read_all(const Tensor& tensor) {
  std::vector<std::byte> bytes(tensor.nbytes());
  tensor.read(0, bytes);
  return bytes;
}

constexpr std::size_t kStorageBytes = 1'000'001;

struct Fakes {
  std::shared_ptr<test::DeflatedStorage> deflated =
      std::make_shared<test::DeflatedStorage>(some_bytes(kStorageBytes, 2));
  std::shared_ptr<test::DecodedStorage> decoded =
      std::make_shared<test::DecodedStorage>(some_bytes(kStorageBytes, 3), 4096);
  std::shared_ptr<test::PreparedStorage> prepared =
      std::make_shared<test::PreparedStorage>(some_bytes(kStorageBytes, 4));
  std::shared_ptr<test::RemoteStorage> remote = std::make_shared<test::RemoteStorage>(some_bytes(kStorageBytes, 5));

  Checkpoint checkpoint() const {
    Checkpoint all;
    all.tensors.insert("mapped", whole_storage(memory_storage(some_bytes(kStorageBytes, 1))));
    all.tensors.insert("deflated", whole_storage(deflated));
    all.tensors.insert("decoded", whole_storage(decoded));
    all.tensors.insert("prepared", whole_storage(prepared));
    all.tensors.insert("remote", whole_storage(remote));
    return all;
  }
};

class FiveFakes : public testing::TestWithParam<unsigned> {};

TEST_P(FiveFakes, GoThroughOneWriter) {
  test::TempDir folder;
  const Fakes fakes;
  SaveOptions options;
  options.threads = GetParam();
  options.memory_bytes = 1 << 20;
  save(fakes.checkpoint(), folder / "out.safetensors", options);

  const Checkpoint written = open(folder / "out.safetensors");
  ASSERT_EQ(written.size(), 5u);
  EXPECT_EQ(read_all(written.at("mapped")), some_bytes(kStorageBytes, 1));
  EXPECT_EQ(read_all(written.at("deflated")), some_bytes(kStorageBytes, 2));
  EXPECT_EQ(read_all(written.at("decoded")), some_bytes(kStorageBytes, 3));
  EXPECT_EQ(read_all(written.at("prepared")), some_bytes(kStorageBytes, 4));
  EXPECT_EQ(read_all(written.at("remote")), some_bytes(kStorageBytes, 5));

  EXPECT_EQ(fakes.deflated->restarts(), 1u) << "a stream is inflated once, from its beginning to its end";
  EXPECT_EQ(fakes.decoded->cut_reads(), 0u) << "rows are never cut";
}

INSTANTIATE_TEST_SUITE_P(Threads, FiveFakes, testing::Values(1u, 2u, 5u));

TEST(Engine, AnnouncesTheBytesThatItWillReadWhateverIsMadeOfThem) {
  test::TempDir folder;
  test::SafetensorsFile file;
  for (int i = 0; i < 100; ++i) file.tensor("small." + std::to_string(i), "F32", {25});
  file.tensor("large", "F32", {100'000});
  const auto source = std::make_shared<test::CountingSource>(test::source_named("far", file.text()), 4096);
  const Checkpoint checkpoint = open(source);
  for (const unsigned threads : {1u, 3u}) {
    source->forget();
    save(cast(checkpoint, DType::bf16), folder / "out.safetensors", {.overwrite = true, .threads = threads});
    std::uint64_t announced = 0;
    for (const ByteRange& range : source->announced()) announced += range.size;
    EXPECT_EQ(announced, 100u * 100 + 400'000) << "all of it, once";
  }
  source->forget();
  save(checkpoint, folder / "out.safetensors", {.overwrite = true, .threads = 1});
  EXPECT_LE(source->bursts, 2u) << "tensors of one file are announced together";
}

TEST(Engine, WritesTheSameBytesWhateverTheThreadCount) {
  test::TempDir folder;
  for (unsigned threads : {1u, 2u, 7u}) {
    SaveOptions options;
    options.threads = threads;
    options.overwrite = true;
    options.memory_bytes = threads << 18;
    save(Fakes().checkpoint(), folder / std::to_string(threads) + ".safetensors", options);
  }
  EXPECT_EQ(folder.read("1.safetensors"), folder.read("2.safetensors"));
  EXPECT_EQ(folder.read("1.safetensors"), folder.read("7.safetensors"));
}

TEST(Engine, AsksRemoteStorageOnceForManySmallTensors) {
  test::TempDir folder;
  const auto remote = std::make_shared<test::RemoteStorage>(some_bytes(1000 * 64, 9));
  Checkpoint many;
  for (unsigned i = 0; i < 1000; ++i)
    many.tensors.insert("t" + std::to_string(i), Tensor(DType::u8, {64}, remote, i * 64));
  save(many, folder / "out.safetensors");
  EXPECT_EQ(remote->requests(), 1u);
  EXPECT_EQ(read_all(open(folder / "out.safetensors").at("t7")), read_all(many.at("t7")));
}

TEST(Engine, ReadsTensorsOfOneStreamInTheOrderOfTheStream) {
  test::TempDir folder;
  const auto deflated = std::make_shared<test::DeflatedStorage>(some_bytes(300'000, 6));
  Checkpoint views;  // the names, and so the order of the file, run against the order of the stream
  views.tensors.insert("c", Tensor(DType::u8, {100'000}, deflated, 0));
  views.tensors.insert("b", Tensor(DType::u8, {100'000}, deflated, 100'000));
  views.tensors.insert("a", Tensor(DType::u8, {100'000}, deflated, 200'000));
  save(views, folder / "out.safetensors");
  EXPECT_EQ(deflated->restarts(), 1u);
}

TEST(Engine, InflatesAStreamOnceForAStridedView) {
  test::TempDir folder;
  const auto deflated = std::make_shared<test::DeflatedStorage>(some_bytes(3'000'000, 6));
  Checkpoint views;
  views.tensors.insert("t", Tensor(DType::u8, {1'000'000, 3}, Strides{1, 1'000'000}, deflated));
  SaveOptions options;
  options.memory_bytes = 1 << 18;
  save(views, folder / "out.safetensors", options);
  EXPECT_EQ(deflated->restarts(), 1u);
  EXPECT_EQ(read_all(open(folder / "out.safetensors").at("t")),
            read_all(Tensor(DType::u8, {3, 1'000'000}, memory_storage(some_bytes(3'000'000, 6))).transpose()));

  options.limits.max_inflated_bytes = 1000;
  EXPECT_ERROR(save(views, folder / "no.safetensors", options), Errc::limit, "from a compressed stream");
}

// As large as one likes, and in nobody's memory.
struct NowhereStorage final : Storage {
  std::uint64_t size_bytes() const override { return 32 << 20; }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    std::fill(out.begin(), out.end(), static_cast<std::byte>(offset >> 16));
  }
};

TEST(Engine, TakesNoMoreMemoryThanItMay) {
  constexpr std::size_t kRest = 8 << 20;  // threads, names, and what malloc keeps
  for (const DType dtype : {DType::u8, DType::f32}) {
    const test::TempDir folder;
    const Checkpoint large = [&] {
      Checkpoint checkpoint;
      checkpoint.tensors.insert("t", whole_storage(std::make_shared<NowhereStorage>()));
      return dtype == DType::u8 ? checkpoint : cast(checkpoint, dtype);
    }();
    const SaveOptions options{.durable = false, .threads = 2, .memory_bytes = 4 << 20};
    EXPECT_LE(test::peak_memory_of([&] { save(large, folder / "out.safetensors", options); }), (4 << 20) + kRest);
  }
}

TEST(Engine, PlansNoMoreMemoryThanItMay) {
  SaveOptions options;
  options.threads = 2;
  const SavePlan plan = plan_save(Fakes().checkpoint(), "out.safetensors", options);
  EXPECT_LE(plan.memory_bytes, options.memory_bytes);
  options.memory_bytes = 1 << 20;
  EXPECT_LE(plan_save(Fakes().checkpoint(), "out.safetensors", options).memory_bytes, 1u << 20);
}

TEST(Engine, CountsEveryByteForProgress) {
  test::TempDir folder;
  std::uint64_t last = 0, total = 0;
  SaveOptions options;
  options.progress = [&](const ProgressState& state) {
    EXPECT_GE(state.done_bytes, last);
    last = state.done_bytes;
    total = state.total_bytes;
    return true;
  };
  save(Fakes().checkpoint(), folder / "out.safetensors", options);
  EXPECT_EQ(last, total);
  EXPECT_EQ(total, std::filesystem::file_size(folder / "out.safetensors"));
}

TEST(Engine, LeavesNoTraceWhenItIsCancelled) {
  test::TempDir folder;
  folder.write("out.safetensors", "old");
  for (int calls_before = 0; calls_before < 5; ++calls_before) {
    int calls = 0;
    SaveOptions options;
    options.overwrite = true;
    options.memory_bytes = 1 << 19;
    options.progress = [&](const ProgressState&) { return calls++ < calls_before; };
    EXPECT_ERROR(save(Fakes().checkpoint(), folder / "out.safetensors", options), Errc::cancelled, "cancelled");
    EXPECT_EQ(folder.read("out.safetensors"), "old");
    EXPECT_EQ(folder.names(), std::set<std::string>{"out.safetensors"});
  }
}

TEST(Engine, SavesOverTheFileThatItReads) {
  test::TempDir folder;
  save(Fakes().checkpoint(), folder / "m.safetensors");
  const Checkpoint source = open(folder / "m.safetensors");
  const std::string before = folder.read("m.safetensors");
  SaveOptions options;
  options.overwrite = true;
  save(source, folder / "m.safetensors", options);
  EXPECT_EQ(folder.read("m.safetensors"), before);
}

TEST(Engine, RefusesToPublishBytesOfASourceThatChanged) {
  test::TempDir folder;
  save(Fakes().checkpoint(), folder / "in.safetensors");
  const Checkpoint source = open(folder / "in.safetensors");
  std::filesystem::resize_file(folder / "in.safetensors", 1000);
  EXPECT_ERROR(save(source, folder / "out.safetensors"), Errc::changed, "in.safetensors");
  EXPECT_EQ(folder.names(), std::set<std::string>{"in.safetensors"});
}

TEST(Engine, RefusesAViewThatRepeatsFourBytesForAnExbibyte) {
  const std::uint64_t exbi = std::uint64_t{1} << 58;
  Checkpoint bomb;
  bomb.tensors.insert("bomb", Tensor(DType::f32, {exbi}, Strides{0}, memory_storage(some_bytes(4, 1))));
  EXPECT_ERROR(plan_save(bomb, "out.safetensors"), Errc::limit, "\"bomb\" repeats bytes");
  EXPECT_ERROR(plan_save(cast(bomb, DType::bf16), "out.safetensors"), Errc::limit, "\"bomb\" repeats bytes");
}

// A sink that fails at its n-th call, so that a test can try every n.
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
  void commit() override {
    count();
    real_->commit();
  }
  void read_back(std::uint64_t offset, std::span<std::byte> out) const override { real_->read_back(offset, out); }

 private:
  void count() {
    if (calls_left_-- == 0) throw Error(Errc::io, "the disk is on fire");
  }
  std::unique_ptr<io::Sink> real_;
  std::atomic<int>& calls_left_;
};

TEST(Engine, LosesNothingWhicheverCallFails) {
  test::TempDir folder;
  save(Fakes().checkpoint(), folder / "new.safetensors");
  const std::string fresh = folder.read("new.safetensors");
  for (int n = 0;; ++n) {
    folder.write("out.safetensors", "old");
    std::atomic<int> calls_left = n;
    SaveOptions options;
    options.memory_bytes = 1 << 18;
    const SavePlan plan = plan_save(Fakes().checkpoint(), folder / "out.safetensors", options);
    const auto create = [&](const std::string& path) {
      return std::make_unique<FailingSink>(io::create_file(path, {.overwrite = true, .durable = false}), calls_left);
    };
    const auto error = test::error_of([&] { write_files(plan, options, create); });
    EXPECT_EQ(folder.names(), (std::set<std::string>{"new.safetensors", "out.safetensors"})) << n;
    if (!error) {
      EXPECT_EQ(folder.read("out.safetensors"), fresh);
      EXPECT_GT(n, 10) << "a save makes more calls than that";
      return;
    }
    EXPECT_EQ(folder.read("out.safetensors"), "old") << n;
  }
}

// A file system on which files can share bytes: all of a range but its first 100 and last 200.
class SharingSink final : public io::Sink {
 public:
  SharingSink(std::unique_ptr<io::Sink> real, std::uint64_t& shared) : real_(std::move(real)), shared_(shared) {}
  void reserve(std::uint64_t size) override { real_->reserve(size); }
  void write_at(std::uint64_t offset, std::span<const std::byte> bytes) override {
    written_ += bytes.size();
    real_->write_at(offset, bytes);
  }
  void commit() override {
    EXPECT_LT(written_, 100'000u) << "the rest is shared";
    real_->commit();
  }
  void read_back(std::uint64_t offset, std::span<std::byte> out) const override { real_->read_back(offset, out); }
  ByteRange share(int descriptor, std::uint64_t first, std::uint64_t offset, std::uint64_t size) override {
    const ByteRange range{100, size - 300};
    std::vector<std::byte> bytes(range.size);
    EXPECT_EQ(pread(descriptor, bytes.data(), bytes.size(), static_cast<off_t>(first + range.offset)),
              static_cast<ssize_t>(bytes.size()));
    real_->write_at(offset + range.offset, bytes);
    shared_ += range.size;
    return range;
  }

 private:
  std::unique_ptr<io::Sink> real_;
  std::uint64_t& shared_;
  std::atomic<std::uint64_t> written_ = 0;
};

TEST(Engine, WritesOnlyWhatTheFileSystemDoesNotShare) {
  test::TempDir folder;
  Checkpoint source;
  for (unsigned i = 0; i < 4; ++i)
    source.tensors.insert("t" + std::to_string(i), whole_storage(memory_storage(some_bytes(kStorageBytes, i))));
  save(source, folder / "in.safetensors");
  const Checkpoint opened = open(folder / "in.safetensors");
  std::uint64_t shared = 0;
  const auto create = [&](const std::string& path) {
    return std::make_unique<SharingSink>(io::create_file(path, {.durable = false}), shared);
  };
  write_files(plan_save(opened, folder / "out.safetensors"), {}, create);
  EXPECT_EQ(shared, 4 * (kStorageBytes - 300));
  EXPECT_EQ(folder.read("out.safetensors"), folder.read("in.safetensors"));
}

// A disk that gives one byte back with a wrong bit.
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

 private:
  std::unique_ptr<io::Sink> real_;
  std::uint64_t byte_;
};

TEST(Engine, ReplacesNothingByAFileThatDoesNotReadBack) {
  test::TempDir folder;
  SaveOptions options;
  options.verify = true;
  for (const char* name : {"out.safetensors", "out.pt"}) {
    const SavePlan plan = plan_save(Fakes().checkpoint(), folder / name, options);
    const std::uint64_t size = plan.files[0].size_bytes;
    for (const std::uint64_t byte : {std::uint64_t{3}, size / 2, size / 2 + 70'000, size - 3}) {
      folder.write(name, "old");
      const auto create = [&](const std::string& path) {
        return std::make_unique<RottingSink>(io::create_file(path, {.overwrite = true, .durable = false}), byte);
      };
      EXPECT_ERROR(write_files(plan, options, create), Errc::io, "does not come back as it was written") << byte;
      EXPECT_EQ(folder.read(name), "old");
    }
  }
}

TEST(Engine, PublishesNoShardWhenALaterOneFails) {
  test::TempDir folder;
  Checkpoint two;
  two.tensors.insert("a", whole_storage(memory_storage(some_bytes(1000, 1))));
  two.tensors.insert("b", whole_storage(memory_storage(some_bytes(1000, 2))));
  SaveOptions options;
  options.max_shard_bytes = 1000;
  const SavePlan plan = plan_save(two, folder / "m.safetensors", options);
  ASSERT_EQ(plan.files.size(), 3u);
  std::atomic<int> calls_left = 7;  // reserve and two writes for each shard, then the index
  EXPECT_ERROR(write_files(plan, options,
                           [&](const std::string& path) {
                             return std::make_unique<FailingSink>(io::create_file(path), calls_left);
                           }),
               Errc::io, "on fire");
  EXPECT_TRUE(folder.names().empty());
}

TEST(Engine, FindsAnExistingFileBeforeItWritesAnything) {
  test::TempDir folder;
  folder.write("m-00002-of-00002.safetensors", "mine");
  Checkpoint two;
  two.tensors.insert("a", whole_storage(memory_storage(some_bytes(1000, 1))));
  two.tensors.insert("b", whole_storage(memory_storage(some_bytes(1000, 2))));
  SaveOptions options;
  options.max_shard_bytes = 1000;
  EXPECT_ERROR(save(two, folder / "m.safetensors", options), Errc::invalid_argument, "already exists");
  EXPECT_EQ(folder.names(), std::set<std::string>{"m-00002-of-00002.safetensors"});
}

TEST(Engine, LeavesNoIndexThatLeadsToOldShards) {
  test::TempDir folder;
  Checkpoint two;
  two.tensors.insert("a", whole_storage(memory_storage(some_bytes(1000, 1))));
  two.tensors.insert("b", whole_storage(memory_storage(some_bytes(1000, 2))));
  const SaveOptions whole{.durable = false}, sharded{.max_shard_bytes = 1000, .durable = false};
  const auto forced = [](SaveOptions options) {
    options.overwrite = true;
    return options;
  };
  save(two, folder / "m.safetensors", sharded);
  EXPECT_ERROR(save(two, folder / "m.safetensors", whole), Errc::invalid_argument, "would be taken for");
  EXPECT_EQ(folder.names().size(), 3u);
  save(two, folder / "m.safetensors", forced(whole));
  EXPECT_EQ(folder.names(), std::set<std::string>{"m.safetensors"}) << "neither the index nor what it names";
  EXPECT_ERROR(save(two, folder / "m.safetensors", sharded), Errc::invalid_argument, "is there already");
  save(two, folder / "m.safetensors", forced(sharded));
  EXPECT_FALSE(folder.names().contains("m.safetensors"));
  EXPECT_EQ(open(folder.path()).shards, 2u);
}

TEST(Shards, SplitAsHuggingFaceSplits) {
  StateDict tensors;
  for (const auto& [name, size] : {std::pair("a", 40u), {"b", 70u}, {"c", 200u}, {"d", 10u}, {"e", 90u}, {"f", 1u}}) {
    tensors.insert(name, Tensor(DType::u8, {size}, memory_storage(some_bytes(size, 1))));
  }
  Checkpoint all;
  all.tensors = tensors;
  SaveOptions options;
  options.max_shard_bytes = 100;
  const SavePlan plan = plan_save(all, "model.safetensors", options);
  std::vector<std::vector<std::string>> names;
  for (const auto& file : plan.files) {
    names.emplace_back();
    for (const auto& item : file.items) names.back().push_back(item.name);
  }
  EXPECT_EQ(names, (std::vector<std::vector<std::string>>{{"a"}, {"b"}, {"c"}, {"d", "e"}, {"f"}, {}}));
  EXPECT_EQ(plan.files[0].path, "model-00001-of-00005.safetensors");
  EXPECT_EQ(plan.files[5].path, "model.safetensors.index.json");
}

}  // namespace
}  // namespace ballast
