// PyTorch checkpoints: what opening one costs.
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
  if (report.wants("torch zip: open from its cache")) {
    write_torch(path, 1'066, 412'672);
    static_cast<void>(open(path, {.cache = Cache::always}));
    open_and_list(path);
    report.add_value("torch zip: open from its cache 1 066 tensors, 440 MB, warm",
                     median_ms(31, [&] { open_and_list(path); }), 5.0, " ms");
    clear_cache({path});
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
