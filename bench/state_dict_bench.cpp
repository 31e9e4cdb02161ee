// State dicts in a program: the cost of filling a model, and of bringing a file into memory.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include <fmt/format.h>
#include <ballast/ballast.hpp>

#include "benchmarks.hpp"
#include "core/huge_pages.hpp"
#include "generate.hpp"
#include "io/page_cache.hpp"

namespace ballast::bench {
namespace {

constexpr std::uint64_t kBytes = std::uint64_t{256} << 20;

const std::string kFill = "load_state_dict of 256 MiB into the model's own memory, one thread / memcpy from the map";
const std::string kCold = "read a cold file of 256 MiB into the model's own memory / fault its map";
const std::string kColdCopy = "read a cold file of 256 MiB into memory / copy it from its map";
const std::string kWarm = "load 256 MiB into our own memory / malloc and read";

struct OwnMemory {
  std::vector<float> w;
};
BALLAST_FIELDS(OwnMemory, w)

struct AnyTensors {
  std::map<std::string, Tensor> tensors;
  auto fields() { return ballast::fields(field("", tensors)); }
};

class File {
 public:
  explicit File(const std::string& path) : descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~File() { close(descriptor_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

void drop_from_page_cache(const std::string& path) {
  const File file(path);
  fdatasync(file.get());
  posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
}

// The goal depends on how far the system reads ahead in this file. With 128 KiB, Linux's default, the disk mostly
// waits; with megabytes the system keeps the disk as busy as any program can.
double cold_goal(const std::string& path) {
  struct stat found = {};
  double kibibytes = 0;
  if (stat(path.c_str(), &found) == 0)
    std::ifstream(fmt::format("/sys/class/bdi/{}:{}/read_ahead_kb", major(found.st_dev), minor(found.st_dev))) >>
        kibibytes;
  return kibibytes >= 1024 ? 1.0 : 1.5;
}

bool is_cold(const std::string& path) { return io::is_cold(File(path).get(), 0, std::filesystem::file_size(path)); }

void fault_the_map(const std::string& path) {
  const StateDict state = load(path);
  const auto bytes = state.at("w").bytes();
  unsigned sum = 0;
  for (std::size_t i = 0; i < bytes.size(); i += 4096) sum += std::to_integer<unsigned>(bytes[i]);
  keep(sum);
}

void read_by_us(const std::string& path) { keep(load(path, {.mode = LoadMode::read})); }

// The memory's pages are present: otherwise page faults would be most of what is measured.
OwnMemory make_model() {
  OwnMemory model;
  model.w.reserve(kBytes / 4);
  prefer_huge_pages(model.w.data(), kBytes);
  model.w.resize(kBytes / 4);
  return model;
}

void bench_fill(Report& report, const std::string& path) {
  if (!report.wants(kFill)) return;
  const Checkpoint checkpoint = open(path);
  const auto map = checkpoint.at("w").bytes();
  OwnMemory model = make_model();
  const auto copy = [&] { std::memcpy(model.w.data(), map.data(), kBytes); };
  copy();  // all pages are present before either side begins
  report.add(kFill, compare({[&] { load_state_dict(model, checkpoint, {.threads = 1}); }}, {copy}),
             Goal::speed_at_least, 0.95);
}

void bench_assign(Report& report) {
  const std::string name = "load_state_dict of 1 000 tensors by assigning / open them";
  if (!report.wants(name)) return;
  const std::string path = scratch() + "/assign.safetensors";
  write_model(path, 0, 1'000);
  const Checkpoint checkpoint = open(path);
  AnyTensors model;
  for (const auto& [tensor_name, tensor] : checkpoint) model.tensors[std::string(tensor_name)];
  report.add(name, compare({[&] { load_state_dict(model, checkpoint); }}, {[&] { open_and_list(path); }}),
             Goal::time_at_most, 6.0);
}

void bench_meta(Report& report) {
  const std::string name = "memory to load 100 000 tensors on the meta device";
  if (!report.wants(name)) return;
  const std::string path = scratch() + "/meta.safetensors";
  write_model(path, 0, 100'000);
  reset_peak();
  keep(load(path, {.device = "meta"}));
  report.add_value(name, static_cast<double>(peak_bytes()) / 1e6, 100, "MB");
}

void bench_cold(Report& report, const std::string& path) {
  if (!report.wants(kCold) && !report.wants(kColdCopy)) return;
  const auto drop = [&] { drop_from_page_cache(path); };
  drop();
  if (!is_cold(path)) {
    fmt::print(stderr, "{}: left out, nothing is dropped from the page cache here\n", kCold);
    return;
  }
  const Side ours{[&] { read_by_us(path); }, drop};
  const auto copy_the_map = [&] { keep(realize(load(path), {.threads = 1})); };
  if (report.wants(kCold)) {
    OwnMemory model = make_model();
    const Side fill{[&] { load_state_dict(model, open(path), {.mode = LoadMode::read}); }, drop};
    report.add(kCold, compare(fill, {[&] { fault_the_map(path); }, drop}), Goal::speed_at_least, cold_goal(path));
  }
  if (report.wants(kColdCopy))
    report.add(kColdCopy, compare(ours, {copy_the_map, drop}), Goal::speed_at_least, cold_goal(path));
}

void bench_warm(Report& report, const std::string& path) {
  if (!report.wants(kWarm)) return;
  malloc_and_read(path);  // the file is in the page cache before either side begins
  report.add(kWarm, compare({[&] { read_by_us(path); }}, {[&] { malloc_and_read(path); }}), Goal::speed_at_least, 2.0);
}

}  // namespace

void bench_state_dict(Report& report) {
  const std::string path = scratch() + "/state.safetensors";
  if (report.wants(kFill) || report.wants(kCold) || report.wants(kColdCopy) || report.wants(kWarm))
    write_random(path, kBytes);
  bench_fill(report, path);
  bench_assign(report);
  bench_meta(report);
  bench_cold(report, path);
  bench_warm(report, path);
}

}  // namespace ballast::bench
