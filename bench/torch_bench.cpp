// PyTorch checkpoints: the cost of opening one.
#include <fcntl.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>
#include <vector>

#include <fmt/format.h>
#include <ballast/ballast.hpp>
#include <ballast/source.hpp>

#include "benchmarks.hpp"
#include "core/thread_pool.hpp"
#include "formats/archive/zip.hpp"
#include "generate.hpp"
#include "io/posix.hpp"

namespace ballast::bench {
namespace {

// A torch zip like a real one, written by our own writer from a model whose data are a hole.
void write_torch(const std::string& path, std::size_t tensors, std::uint64_t tensor_bytes) {
  const std::string model = scratch() + "/source.safetensors";
  write_model(model, 0, tensors, tensor_bytes);
  save(open(model), path, {.overwrite = true, .durable = false});
  std::filesystem::remove(model);
}

// Bytes that this process has requested from the kernel, by read and similar calls.
double bytes_read() {
  std::ifstream io("/proc/self/io");
  std::string key;
  double value = 0;
  while (io >> key >> value) {
    if (key == "rchar:") return value;
  }
  return 0;
}

// The bytes that a program has to read to open a torch zip without trusting it, read by plain calls: every member's own
// header, the directory and the pickle.
class NeededBytes {
 public:
  explicit NeededBytes(const std::string& path) : path_(path) {
    const archive::Zip zip = archive::read_zip(file_source(path), {}, archive::ZipReading::strict);
    std::uint64_t end = 0;
    for (const archive::ZipMember& member : zip.members) {
      ranges_.push_back({member.header_offset, member.data_offset - member.header_offset});
      if (member.name.ends_with("/data.pkl")) ranges_.push_back({member.data_offset, member.bytes});
      end = std::max(end, member.data_offset + member.packed_bytes);
    }
    ranges_.push_back({end, std::filesystem::file_size(path) - end});
  }

  void read() const {
    const io::UniqueFd file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
    std::vector<std::byte> bytes(1 << 20);
    for (const ByteRange& range : ranges_) {
      std::size_t done = 0;
      if (io::read_all_at(file.get(), range.offset, std::span(bytes).first(range.size), done) != 0) std::abort();
      keep(bytes[0]);
    }
  }

 private:
  std::string path_;
  std::vector<ByteRange> ranges_;
};

// Opening may take this many times as long as reading those bytes. On a quiet machine opening takes 4 to 5 ms.
constexpr double kMostOfReading = 8.0;

}  // namespace

void bench_torch(Report& report) {
  const std::string path = scratch() + "/model.pt";
  const std::string plain = "torch zip: open 1 066 tensors, 440 MB / read its headers, directory and pickle";
  const std::string little = "torch zip: open reads", cached = "torch zip: open its cache, 1 066 tensors / the same";
  if (report.wants(plain) || report.wants(little) || report.wants(cached)) {
    write_torch(path, 1'066, 412'672);  // 440 MB
    const NeededBytes needed(path);
    const Side ours{[&] { open_and_list(path); }}, theirs{[&] { needed.read(); }};
    if (report.wants(plain)) report.add(plain, compare(ours, theirs, 41), Goal::time_at_most, kMostOfReading);
    const double before = bytes_read();
    open_and_list(path);
    if (report.wants(little)) report.add_value(little, (bytes_read() - before) / 1e6, 1.0, " MB");
    if (report.wants(cached)) {
      static_cast<void>(open(path, {.cache = Cache::always}));
      report.add(cached, compare(ours, theirs, 41), Goal::time_at_most, kMostOfReading);
      clear_cache({path});
    }
  }
  if (report.wants("torch zip: growth")) {
    std::vector<double> times;
    for (const std::size_t count : {2'000u, 20'000u}) {
      write_torch(path, count, 8192);
      times.push_back(median_ms(15, [&] { open_and_list(path); }));
    }
    report.add_value("torch zip: growth from 2 000 to 20 000 tensors, exponent", std::log10(times[1] / times[0]), 1.1,
                     "");
  }
  std::filesystem::remove(path);
}

}  // namespace ballast::bench
