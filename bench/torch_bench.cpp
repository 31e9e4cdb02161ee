// PyTorch checkpoints: what opening one costs, and converting it against a plain copy of the same bytes.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <ballast/ballast.hpp>

#include "benchmarks.hpp"
#include "generate.hpp"

namespace ballast::bench {
namespace {

// A torch zip like a real one, written by our own writer from a model whose data are a hole.
void write_torch(const std::string& path, std::size_t tensors, std::uint64_t tensor_bytes) {
  const std::string model = scratch() + "/source.safetensors";
  write_model(model, 0, tensors, tensor_bytes);
  save(open(model), path, {.overwrite = true, .durable = false});
  std::filesystem::remove(model);
}

void open_and_list(const std::string& path) {
  const Checkpoint checkpoint = open(path);
  std::uint64_t seen = 0;
  for (const auto& [name, tensor] : checkpoint) seen += name.size() + tensor.nbytes();
  keep(seen);
}

// Bytes that this process has asked the kernel for, by read and its kin.
double bytes_read() {
  std::ifstream io("/proc/self/io");
  std::string key;
  double value = 0;
  while (io >> key >> value) {
    if (key == "rchar:") return value;
  }
  return 0;
}

double median_ms(int rounds, const std::function<void()>& run) {
  std::vector<double> times;
  for (int i = 0; i < rounds; ++i) {
    const auto start = std::chrono::steady_clock::now();
    run();
    times.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  }
  std::nth_element(times.begin(), times.begin() + rounds / 2, times.end());
  return times[static_cast<std::size_t>(rounds / 2)];
}

// What cp does, without its copy_file_range, which does not copy on some file systems.
void copy_file(const std::string& from, const std::string& to) {
  std::filesystem::remove(to);
  const int in = ::open(from.c_str(), O_RDONLY | O_CLOEXEC);
  const int out = ::open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  std::vector<char> buffer(128 * 1024);
  for (;;) {
    const ssize_t n = ::read(in, buffer.data(), buffer.size());
    if (n <= 0 || ::write(out, buffer.data(), static_cast<std::size_t>(n)) != n) break;
  }
  ::close(in);
  ::close(out);
}

}  // namespace

void bench_torch(Report& report) {
  const std::string path = scratch() + "/model.pt";
  if (report.wants("torch zip: open")) {
    write_torch(path, 1'066, 412'672);  // 440 MB
    open_and_list(path);
    report.add_value("torch zip: open 1 066 tensors, 440 MB, warm", median_ms(31, [&] { open_and_list(path); }), 5.0,
                     " ms");
    const double before = bytes_read();
    open_and_list(path);
    report.add_value("torch zip: open reads", (bytes_read() - before) / 1e6, 1.0, " MB");
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
  if (report.wants("torch zip to safetensors / copy")) {
    const std::string random = scratch() + "/random.safetensors", copy = scratch() + "/copy";
    const std::string converted = scratch() + "/converted.safetensors";
    write_random(random, 256 << 20);
    save(open(random), path, {.overwrite = true, .durable = false});
    std::filesystem::remove(random);
    const auto remove = [&] {
      std::filesystem::remove(converted);
      std::filesystem::remove(copy);
    };
    const auto convert = [&] { save(open(path), converted, {.overwrite = true, .durable = false}); };
    report.add("torch zip to safetensors / copy of the same bytes",
               compare({convert, remove}, {[&] { copy_file(path, copy); }, remove}, 15), Goal::speed_at_least, 1.0);
  }
  std::filesystem::remove(path);
}

}  // namespace ballast::bench
