// What a load costs: bytes read, sent and held, messages, memory, and the threads that call MPI.
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "any_model.hpp"
#include "builders/safetensors_file.hpp"

namespace {

// What MPI was asked for since the last look.
std::atomic<int> g_most_bytes = 0, g_calls = 0, g_calls_of_others = 0;
const std::thread::id g_main = std::this_thread::get_id();

void note_call(int bytes) {
  ++g_calls;
  if (std::this_thread::get_id() != g_main) ++g_calls_of_others;
  g_most_bytes = std::max(g_most_bytes.load(), bytes);
}

}  // namespace

// MPI lets a program put its own functions before those of the library.
extern "C" int MPI_Sendrecv(const void* out, int sends, MPI_Datatype send_type, int to, int send_tag, void* in,
                            int receives, MPI_Datatype receive_type, int from, int receive_tag, MPI_Comm comm,
                            MPI_Status* status) {
  note_call(std::max(sends, receives));
  return PMPI_Sendrecv(out, sends, send_type, to, send_tag, in, receives, receive_type, from, receive_tag, comm,
                       status);
}
extern "C" int MPI_Bcast(void* bytes, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  note_call(count);
  return PMPI_Bcast(bytes, count, type, root, comm);
}
extern "C" int MPI_Allreduce(const void* out, void* in, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  note_call(count);
  return PMPI_Allreduce(out, in, count, type, op, comm);
}

namespace ballast::test {
namespace {

using mpi::RankTraffic;

// `count` tensors of [rows, columns] F32, written by rank 0. Their bytes are a hole in the file.
std::string write_tensors(const SharedDir& dir, std::size_t count, std::uint64_t rows, std::uint64_t columns) {
  const std::string path = dir / "model.safetensors";
  if (world_rank() == 0) {
    std::string header = "{";
    std::uint64_t end = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t begin = end;
      end += rows * columns * 4;
      header += (i == 0 ? "\"t." : ",\"t.") + std::to_string(i) + "\":{\"dtype\":\"F32\",\"shape\":[" +
                std::to_string(rows) + "," + std::to_string(columns) + "],\"data_offsets\":[" + std::to_string(begin) +
                "," + std::to_string(end) + "]}";
    }
    header += "}";
    header.resize((header.size() + 7) / 8 * 8, ' ');
    const std::uint64_t length = header.size();
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(&length), 8)
        .write(header.data(), static_cast<std::streamsize>(length));
    std::filesystem::resize_file(path, 8 + length + end);
  }
  world().barrier();
  return path;
}

const std::vector<RankRule> kRows = {{"*", RankSplit::rows}}, kColumns = {{"*", RankSplit::columns}};

mpi::Loaded load(const std::string& path, const std::vector<RankRule>& rules, const mpi::LoadOptions& options = {}) {
  AnyModel model = model_for(path, rules);
  return mpi::load_state_dict(MPI_COMM_WORLD, model, path, rules, options);
}

TEST(ALoad, ReadsEachByteOfAThousandTensorsOnceAndEvenly) {
  const SharedDir dir;
  const std::string path = write_tensors(dir, 1000, 64, 60);
  for (const auto& rules : {kRows, kColumns, std::vector<RankRule>()}) {
    const auto loaded = load(path, rules);
    EXPECT_EQ(loaded.ranks.total().read, 1000u * 64 * 60 * 4);
    EXPECT_EQ(loaded.ranks.total().twice, 0u);
    EXPECT_LE(loaded.ranks.imbalance(&RankTraffic::read), 1.05);
    EXPECT_EQ(loaded.ranks.total().sent, loaded.ranks.total().received);
  }
}

TEST(ALoad, ReadsEachByteOfNinetyTwoThousandTensorsOnceAndEvenly) {
  const SharedDir dir;
  const auto loaded = load(write_tensors(dir, 92'000, 8, 16), kRows);
  EXPECT_EQ(loaded.ranks.total().read, 92'000u * 8 * 16 * 4);
  EXPECT_LE(loaded.ranks.imbalance(&RankTraffic::read), 1.05);
}

TEST(ALoad, ReadsACompressedFrameOnceHoweverSmallTheBuffersAre) {
  const SharedDir dir;
  const std::string path = dir / "packed.safetensors";
  if (world_rank() == 0) {
    Checkpoint plain;
    std::vector<float> numbers(3'000'000);
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i * 7919 % 100'003);
    plain.tensors.insert("w", Tensor::from_values<float>(DType::f32, {3000, 1000}, numbers));
    save(plain, path, {.compress = true});
  }
  world().barrier();
  const auto packed_bytes = static_cast<double>(std::filesystem::file_size(path));
  for (const auto& rules : {kRows, std::vector<RankRule>()}) {
    const auto loaded = load(path, rules, {.memory_bytes = 256 << 10});
    EXPECT_LE(static_cast<double>(loaded.ranks.total().read), 1.02 * packed_bytes);
    EXPECT_GE(static_cast<double>(loaded.ranks.total().read), 0.9 * packed_bytes);
  }
}

TEST(ALoad, DoesWhatWasPlanned) {
  const SharedDir dir;
  const std::string path = write_tensors(dir, 300, 64, 64);
  for (const auto& rules : {kRows, kColumns, std::vector<RankRule>()}) {
    for (const bool share : {false, true}) {
      const mpi::LoadOptions options{.share = share};
      const auto planned = mpi::planned_traffic(open(path), world_size(), rules, ranks_a_host(), options);
      const auto loaded = load(path, rules, options);
      for (unsigned rank = 0; rank < world_size(); ++rank) {
        EXPECT_EQ(loaded.ranks.ranks[rank].read, planned.ranks[rank].read);
        EXPECT_EQ(loaded.ranks.ranks[rank].sent, planned.ranks[rank].sent);
        EXPECT_EQ(loaded.ranks.ranks[rank].received, planned.ranks[rank].received);
        EXPECT_EQ(loaded.ranks.ranks[rank].held, planned.ranks[rank].held);
      }
    }
  }
}

TEST(ALoad, ReadsEachByteOncePerNodeIfToldToAndCountsWhatItReadsInVain) {
  const SharedDir dir;
  const std::string path = write_tensors(dir, 100, 60, 60);
  constexpr std::uint64_t kBytes = 100 * 60 * 60 * 4;
  const mpi::LoadOptions options{.read_once = mpi::ReadOnce::node};
  const auto whole = load(path, {}, options), rows = load(path, kRows, options),
             columns = load(path, kColumns, options);
  EXPECT_EQ(whole.ranks.total().read, kBytes * hosts());
  EXPECT_EQ(rows.ranks.total().read, kBytes);
  EXPECT_EQ(rows.ranks.total().twice, 0u);
  // Some columns lie in all of a tensor's bytes.
  EXPECT_EQ(columns.ranks.total().read, kBytes * hosts());
  EXPECT_EQ(columns.ranks.total().twice, kBytes * (hosts() - 1));
}

TEST(ALoad, OpensTheFilesOnOneRankOnly) {
  const SharedDir dir;
  const auto loaded = load(write_tensors(dir, 1000, 64, 60), kRows);
  EXPECT_GT(loaded.ranks.ranks[0].opening, 0u);
  for (std::size_t rank = 1; rank < loaded.ranks.ranks.size(); ++rank) EXPECT_EQ(loaded.ranks.ranks[rank].opening, 0u);
}

TEST(ALoad, SendsNothingIfEveryRankNeedsLargeRangesOfItsOwn) {
  const SharedDir dir;
  const auto loaded = load(write_tensors(dir, 4, 12 << 8, 2 << 10), kRows);  // 24 MiB each, a rank has 6 MiB or more
  EXPECT_EQ(loaded.ranks.total().sent, 0u);
}

TEST(ALoad, SendsPiecesOfAtMost64MiB) {
  const SharedDir dir;
  const std::string path = write_tensors(dir, 3, 1 << 12, 6 << 10);  // 96 MiB each
  g_most_bytes = 0;
  const auto loaded = load(path, {}, {.share = false, .memory_bytes = std::uint64_t{4} << 30});
  EXPECT_EQ(loaded.ranks.total().read, 3u * (1 << 12) * (6 << 10) * 4);
  EXPECT_LE(g_most_bytes, 64 << 20);
  if (world_size() > 1) {
    EXPECT_EQ(g_most_bytes, 64 << 20);
  }
}

TEST(ALoad, LeavesAllCallsOfMpiToTheThreadThatCalls) {
  const SharedDir dir;
  const std::string path = write_tensors(dir, 1000, 64, 60);
  g_calls = g_calls_of_others = 0;
  load(path, kColumns, {.memory_bytes = 1 << 20});
  EXPECT_GT(g_calls, 4);
  EXPECT_EQ(g_calls_of_others, 0);
}

// The inode behind an address of this process, and whether it has a name; 0 if there is none.
std::string file_behind(const void* address) {
  const auto place = reinterpret_cast<std::uintptr_t>(address);
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0, end = 0;
    char dash = 0;
    std::string rights, offset, device, inode, name;
    std::istringstream words(line);
    words >> std::hex >> begin >> dash >> end >> rights >> offset >> device >> inode >> name;
    if (begin <= place && place < end) return inode + " " + rights + " " + name;
  }
  return "nowhere";
}

TEST(ALoad, KeepsOneCopyOnANodeOfWhatItsRanksShare) {
  const SharedDir dir;
  const std::string path = write_tensors(dir, 10, 100, 1000);
  AnyModel model = model_for(path, {});
  const auto loaded = mpi::load_state_dict(MPI_COMM_WORLD, model, path, {});
  // Who reads a byte writes it to its place on its own node, and sends it once to each other.
  EXPECT_EQ(loaded.ranks.total().received, 4'000'000u * (hosts() - 1));
  EXPECT_EQ(loaded.ranks.total().held, 4'000'000u * hosts());
  const std::byte* const bytes = model.tensors.at("t.3").bytes().data();
  const std::string mine = file_behind(bytes);
  const auto all = world().node().exchange(std::as_bytes(std::span(mine)));
  for (const mpi::Bytes& other : all) EXPECT_TRUE(std::ranges::equal(other, all.front()));
  if (ranks_a_host() > 1) {
    EXPECT_NE(mine.find("r--s /dev/shm/ballast-"), std::string::npos) << mine;
    for (const auto& entry : std::filesystem::directory_iterator("/dev/shm"))
      EXPECT_FALSE(entry.path().filename().string().starts_with("ballast-" + std::to_string(getpid()))) << "has a name";
    model.tensors.clear();
    EXPECT_EQ(file_behind(bytes).find("/dev/shm"), std::string::npos) << "is not freed with the last tensor";
  }
  world().barrier();
}

TEST(ALoad, GivesEveryRankItsOwnCopyWhereTheSystemHasTooLittleToShare) {
  const SharedDir dir;
  const std::string path = write_tensors(dir, 10, 100, 1000);
  rlimit limit = {};
  getrlimit(RLIMIT_FSIZE, &limit);
  const rlimit little = {1 << 20, limit.rlim_max};
  std::signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &little);
  const auto loaded = load(path, {});
  setrlimit(RLIMIT_FSIZE, &limit);
  EXPECT_EQ(loaded.ranks.total().held, 4'000'000u * world_size());
  EXPECT_EQ(loaded.ranks.total().read, 4'000'000u);
  const bool has_note =
      std::ranges::any_of(loaded.report.notes, [](const Note& note) { return note.where == "/dev/shm"; });
  EXPECT_EQ(has_note, ranks_a_host() > 1);
}

TEST(ALoad, GivesEveryRankItsOwnCopyIfToldTo) {
  const SharedDir dir;
  const std::string path = write_tensors(dir, 10, 100, 1000);
  const auto loaded = load(path, {}, {.share = false});
  EXPECT_EQ(loaded.ranks.total().held, 4'000'000u * world_size());
  EXPECT_EQ(loaded.ranks.total().received, 4'000'000u * (world_size() - 1));
  EXPECT_LE(loaded.ranks.imbalance(&RankTraffic::sent), 1.05);
}

// Memory of this process that no file is behind.
std::uint64_t anonymous_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("RssAnon:")) return std::stoull(line.substr(8)) * 1024;
  }
  return 0;
}

// The most anonymous memory that there is while the work is done, beyond what there was before.
template <class Work>
std::uint64_t peak_while(const Work& work) {
  mallopt(M_MMAP_THRESHOLD, 128 << 10);  // large blocks come from the system, and go back there
  malloc_trim(0);
  const std::uint64_t before = anonymous_bytes();
  std::atomic<bool> is_over = false;
  std::uint64_t most = before;
  std::thread watcher([&] {
    while (!is_over) {
      most = std::max(most, anonymous_bytes());
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  work();
  is_over = true;
  watcher.join();
  return most - before;
}

struct OwnMemory {
  std::map<std::string, std::vector<float>> tensors;
  auto fields() { return ballast::fields(field("", tensors)); }
};

TEST(ALoad, TakesNoMoreMemoryThanTheResultAndItsBuffers) {
  const SharedDir dir;
  const std::string path = write_tensors(dir, 60, 1 << 10, 1 << 10);  // 240 MiB
  constexpr std::uint64_t kBuffers = std::uint64_t{16} << 20, kSlack = std::uint64_t{12} << 20;
  for (const auto& rules : {kRows, kColumns}) {
    AnyModel views = model_for(path, rules);
    std::uint64_t held = 0;
    std::uint64_t peak = peak_while([&] {
      held = mpi::load_state_dict(MPI_COMM_WORLD, views, path, rules, {.memory_bytes = kBuffers})
                 .ranks.ranks[world_rank()]
                 .held;
    });
    EXPECT_LE(peak, held + kBuffers + kSlack);
    EXPECT_GE(peak, held / 2) << "nothing was measured";

    OwnMemory own;
    for (const auto& [name, tensor] : views.tensors) own.tensors.try_emplace(name);
    views.tensors.clear();
    peak = peak_while([&] {
      held = mpi::load_state_dict(MPI_COMM_WORLD, own, path, rules, {.memory_bytes = kBuffers})
                 .ranks.ranks[world_rank()]
                 .held;
    });
    EXPECT_LE(peak, held + kBuffers + kSlack) << "of the model's own memory";
  }
}

}  // namespace
}  // namespace ballast::test
